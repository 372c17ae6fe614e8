"""Reduction chains: accumulating workloads that continue one another's sums.

If k is too long for CMX, the compiler splits a matmul into a chain of workloads: the first writes
sums, the others add to them. After copy propagation, the operands of a chain are contiguous in
memory again; so a chain is fused into one matmul, executed by its last workload, if

- the first of the chain does not accumulate: earlier sums would be added last,
- no other operation accesses the sums between two workloads of the chain, and
- no operation writes an operand of a workload between that workload and the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from driver_layer.engines.native.jit.emitter import I64
from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.arrays import Flags, Ints
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.dataflow import NONE, Scan, flags, scan_kernel
from driver_layer.engines.native.lower.levels import Dependences
from driver_layer.engines.native.lower.template import NO_WORD, Access, Reduction, Template

_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class ReductionChains:
    """Chain of each operation; most chains have one operation.

    Attributes:
        last: last operation of each operation's chain.
        first: first operation of each operation's chain.
    """

    last: Ints
    first: Ints

    @property
    def fused(self) -> Flags:
        """True for operations that the last operation of their chain executes as well."""
        return self.last != np.arange(len(self.last))


def find_reduction_chains(
    calls: Calls, accesses: Accesses, dependences: Dependences
) -> ReductionChains:
    """Find the reduction chains of a program.

    Args:
        calls: one call for each executed operation.
        accesses: all operations.
        dependences: dependences between operations.
    """
    count = len(accesses)
    candidates, sums = np.full((2, count), NONE, np.int64)
    begins = np.zeros(count, np.int64)
    for template, members in calls.grouped(lambda one: one.reduction and one.reduction.family):
        reduction = template.reduction
        assert reduction is not None  # else not in a group
        later, earlier = _continuations(calls, reduction, members)
        candidates[calls.operation[later]] = calls.operation[earlier]
        operations = calls.operation[members]
        sums[operations] = accesses.first[operations] + reduction.accumulator
        begins[operations] = ~_accumulating(calls)[calls.template[members]]
    before = np.full(count, NONE, np.int64)
    if (candidates != NONE).any():
        graph = dependences.graph
        touched, written = graph.per_region(NONE), graph.per_region(NONE)
        marked = flags(dependences.eliminated), candidates, sums, begins
        graph.run(
            dependences.kernels, _CHAINS, dependences.regions, *marked, touched, written, before
        )
        before[_too_long(calls, before)] = NONE
    return ReductionChains(*_ends(before))


def _too_long(calls: Calls, before: Ints) -> Flags:
    """Return True for each operation in a chain whose sums might overflow their type."""
    sizes = np.zeros(len(before), np.int64)
    sizes[calls.operation] = _sizes(calls)
    reductions = [one.reduction for one in calls.templates]
    most = [one.max_size if one and one.max_size is not None else _MOST for one in reductions]
    limits = np.full(len(before), _MOST)
    limits[calls.operation] = np.array(most, np.int64)[calls.template]
    last, _ = _ends(before)
    total = np.zeros_like(sizes)
    np.add.at(total, last, sizes)
    return total[last] > limits


def _accumulating(calls: Calls) -> Flags:
    """Return True for each template that accumulates."""
    depths = [one.reduction for one in calls.templates]
    return np.array(
        [reduction is not None and reduction.accumulates for reduction in depths], np.bool_
    )


def _continuations(calls: Calls, reduction: Reduction, members: Ints) -> tuple[Ints, Ints]:
    """Return pairs of a family's calls, where the first continues the sums of the second."""
    some = calls.templates[int(calls.template[members[0]])]
    words = calls.words(members, len(some.words))
    place = some.slots[reduction.accumulator].word
    order = np.lexsort((calls.operation[members], words[:, place]))
    members, words = members[order], words[order]
    one, two = words[:-1], words[1:]
    size = one[:, reduction.sizes[0]]
    continues = _accumulating(calls)[calls.template[members[1:]]]
    free = [*reduction.sizes, *(pointer for pointer, _, _ in reduction.pointers)]
    for pointer, stride, much in reduction.pointers:
        distance = size // much * one[:, stride]
        continues &= (size % much == 0) & (two[:, pointer] == one[:, pointer] + distance)
    if reduction.group != NO_WORD:
        groups = size // one[:, reduction.group]
        continues &= size % one[:, reduction.group] == 0
        for pointer, stride in reduction.tables:
            continues &= two[:, pointer] == one[:, pointer] + groups * one[:, stride]
        free += [pointer for pointer, _ in reduction.tables]
    fixed = np.delete(words, free, axis=1)
    continues &= (fixed[1:] == fixed[:-1]).all(axis=1)
    return members[1:][continues], members[:-1][continues]


def _ends(before: Ints) -> tuple[Ints, Ints]:
    """Return the last and the first operation of each operation's chain."""
    linked = np.flatnonzero(before != NONE)
    after = np.full_like(before, NONE)
    after[before[linked]] = linked
    return _follow(after), _follow(before)


def _follow(links: Ints) -> Ints:
    """Return the end of the links from each operation."""
    ends = np.arange(len(links))
    while True:
        following = links[ends]
        linked = following != NONE
        if not linked.any():
            return ends
        ends[linked] = following[linked]


def _scan_chains(scan: Scan) -> None:
    # By region: the last operation that accessed it, and the last that wrote it.
    regions, eliminated, candidates, sums, begins, touched, written, before = scan.state
    e = scan.e
    with scan.operations() as operation, scan.when(scan.equal(eliminated[operation], I64(0))):
        candidate = candidates[operation]
        with scan.when(scan.exists(candidate)):
            region = regions[sums[operation]]
            chained = scan.b.or_(scan.is_set(begins[candidate]), scan.exists(before[candidate]))
            with (
                scan.when(scan.exists(region), chained),
                scan.when(scan.equal(touched[region], candidate)),
            ):
                kept = e.variable(I64(1))
                with (
                    scan.follow(candidate, before) as member,
                    scan.accesses(member, Access.READ) as access,
                    scan.when(scan.b.not_(scan.equal(access, sums[member]))),
                ):
                    read = regions[access]
                    with (
                        scan.when(scan.exists(read)),
                        scan.when(scan.less(member, written[read])),
                    ):
                        kept.set(I64(0))
                with scan.when(scan.is_set(kept.get())):
                    before[operation] = candidate
        for kind, noted in ((Access.READ, (touched,)), (Access.WRITE, (touched, written))):
            with (
                scan.accesses(operation, kind) as access,
                scan.aliases(regions[access]) as (other, _),
            ):
                for array in noted:
                    array[other] = operation


_CHAINS = scan_kernel("chains", 8, _scan_chains)


def fuse_calls(calls: Calls, chains: ReductionChains) -> Calls:
    """Let the last call of each chain execute the complete chain, from the first call's begin."""
    operation = calls.operation
    ends = np.flatnonzero(
        (chains.last[operation] == operation) & (chains.first[operation] != operation)
    )
    if not len(ends):
        return calls
    at = np.full(len(chains.last), -1, np.int64)
    at[operation] = np.arange(len(calls))
    begins = at[chains.first[operation[ends]]]
    members = np.flatnonzero(chains.first[chains.last[operation]] != chains.last[operation])
    of_chain = chains.last[operation[members]]
    sizes = np.zeros(len(chains.last), np.int64)
    costs = np.zeros(len(chains.last), np.int64)
    np.add.at(sizes, of_chain, _sizes(calls)[members])
    np.add.at(costs, of_chain, calls.cost[members])
    calls = _lengthened(calls, ends, begins, sizes[operation[ends]])
    cost = calls.cost.copy()
    cost[ends] = costs[operation[ends]]
    return replace(calls, cost=cost).take(~chains.fused[operation])


def _sizes(calls: Calls) -> Ints:
    """Return the reduction size of each call; 0 without a reduction."""
    sizes = [one.words[one.reduction.sizes[0]] if one.reduction else 0 for one in calls.templates]
    return np.array(sizes, np.int64)[calls.template]


def _lengthened(calls: Calls, ends: Ints, begins: Ints, sizes: Ints) -> Calls:
    """Replace the arguments of calls ``ends`` by those of ``begins``, with new reduction sizes."""
    templates: list[Template] = list(calls.templates)
    template, begin, pool = calls.template.copy(), calls.begin.copy(), [calls.pool]
    top = len(calls.pool)
    kinds = np.stack([calls.template[begins], sizes], axis=1)
    different: list[tuple[int, int]] = np.unique(kinds, axis=0).tolist()
    for number, size in different:
        whole = calls.templates[number]
        reduction = whole.reduction
        assert reduction is not None
        chosen = (kinds == (number, size)).all(axis=1)
        words = calls.words(begins[chosen], len(whole.words))
        words[:, list(reduction.sizes)] = size
        template[ends[chosen]] = len(templates)
        templates.append(replace(whole, scratch=reduction.scratch(size)))
        begin[ends[chosen]] = top + words.shape[1] * np.arange(len(words))
        top += words.size
        pool.append(words.reshape(-1))
    return replace(
        calls, templates=templates, template=template, begin=begin, pool=np.concatenate(pool)
    )


def fuse_accesses(dependences: Dependences, chains: ReductionChains) -> Dependences:
    """Move the accesses of a chain to its last operation."""
    graph, fused = dependences.graph, chains.fused
    if not fused.any():
        return dependences
    owners = chains.last[graph.owners]
    order = np.argsort(owners, kind="stable")
    owners = owners[order]
    first = np.searchsorted(owners, np.arange(len(graph.first))).astype(np.int64)
    joined = replace(graph, first=first, kinds=graph.kinds[order], owners=owners)
    return replace(
        dependences,
        graph=joined,
        regions=dependences.regions[order],
        eliminated=dependences.eliminated | fused,
    )
