"""Workloads that go on with each other's sums.

Where k is too long for CMX, a product is a chain of workloads: the first makes sums, the others add
to them. Their operands lie side by side again once they are read where they came from; so a chain
is one product, made by its last workload, if

- the first of the chain adds to nothing, or sums that were there would be added last,
- nobody else reaches the sums between two of the chain, and
- what a workload reads is not written between it and the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driver_layer.engines.native.jit.emitter import I64
from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.levels import Freedom
from driver_layer.engines.native.lower.template import NO_WORD, Access, Depth
from driver_layer.engines.native.lower.walk import NONE, Walk, flags, walk_kernel


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """Operations whose sums others go on with.

    Attributes:
        last: the last of the chain that each operation is in; most are alone in theirs.
        first: the first of it.
    """

    last: Ints
    first: Ints

    @property
    def absorbed(self) -> Flags:
        """Operations that others do as well."""
        return self.last != np.arange(len(self.last))


def find_chains(calls: Calls, accesses: Accesses, freedom: Freedom) -> Chains:
    """Find the chains of a program.

    Args:
        calls: one for each operation that is executed.
        accesses: all operations.
        freedom: which bytes they reach.
    """
    count = len(accesses)
    candidates, sums = np.full((2, count), NONE, np.int64)
    begins = np.zeros(count, np.int64)
    for depth, members in _families(calls):
        later, earlier = _neighbours(calls, depth, members)
        candidates[calls.operation[later]] = calls.operation[earlier]
        operations = calls.operation[members]
        sums[operations] = accesses.first[operations] + depth.out
        begins[operations] = ~_accumulating(calls)[calls.template[members]]
    before = np.full(count, NONE, np.int64)
    if (candidates != NONE).any():
        ground = freedom.ground
        touched, written = ground.regions(NONE), ground.regions(NONE)
        marked = flags(freedom.dropped), candidates, sums, begins
        ground.walk(freedom.kernels, _CHAINS, freedom.regions, *marked, touched, written, before)
        before[_too_long(calls, before)] = NONE
    return Chains(*_ends(before))


def _too_long(calls: Calls, before: Ints) -> Flags:
    """Operations of chains whose sums might not fit into their type."""
    sizes = np.zeros(len(before), np.int64)
    limits = np.full(len(before), np.iinfo(np.int64).max)
    for number, template in enumerate(calls.templates):
        if template.depth is not None:
            members = calls.operation[calls.template == number]
            sizes[members] = template.words[template.depth.sizes[0]]
            if template.depth.most is not None:
                limits[members] = template.depth.most
    last, _ = _ends(before)
    total = np.zeros_like(sizes)
    np.add.at(total, last, sizes)
    return total[last] > limits


def _families(calls: Calls) -> list[tuple[Depth, Ints]]:
    """Calls that may be in a chain with each other."""
    families: dict[str, tuple[Depth, list[int]]] = {}
    for number, template in enumerate(calls.templates):
        if template.depth is not None and template.spec is not None:
            families.setdefault(template.depth.family, (template.depth, []))[1].append(number)
    found = [
        (depth, np.flatnonzero(np.isin(calls.template, numbers)))
        for depth, numbers in families.values()
    ]
    return [(depth, members) for depth, members in found if len(members) > 1]


def _accumulating(calls: Calls) -> Flags:
    """Which templates add to sums."""
    depths = [one.depth for one in calls.templates]
    return np.array([depth is not None and depth.accumulates for depth in depths], np.bool_)


def _neighbours(calls: Calls, depth: Depth, members: Ints) -> tuple[Ints, Ints]:
    """Pairs of calls of which the later one, with the same sums, goes on where the other stops."""
    some = calls.templates[int(calls.template[members[0]])]
    words = calls.words(members, len(some.words))
    place = some.slots[depth.out].word
    order = np.lexsort((calls.operation[members], words[:, place]))
    members, words = members[order], words[order]
    one, two = words[:-1], words[1:]
    size = one[:, depth.sizes[0]]
    goes_on = _accumulating(calls)[calls.template[members[1:]]]
    free = [*depth.sizes, *(pointer for pointer, _, _ in depth.moved)]
    for pointer, stride, much in depth.moved:
        distance = size // much * one[:, stride]
        goes_on &= (size % much == 0) & (two[:, pointer] == one[:, pointer] + distance)
    if depth.group != NO_WORD:
        groups = size // one[:, depth.group]
        goes_on &= size % one[:, depth.group] == 0
        for pointer, stride in depth.tables:
            goes_on &= two[:, pointer] == one[:, pointer] + groups * one[:, stride]
        free += [pointer for pointer, _ in depth.tables]
    fixed = np.delete(words, free, axis=1)
    goes_on &= (fixed[1:] == fixed[:-1]).all(axis=1)
    return members[1:][goes_on], members[:-1][goes_on]


def _ends(before: Ints) -> tuple[Ints, Ints]:
    """The last and the first of each operation's chain."""
    linked = np.flatnonzero(before != NONE)
    after = np.full_like(before, NONE)
    after[before[linked]] = linked
    return _follow(after), _follow(before)


def _follow(links: Ints) -> Ints:
    """Where links lead to in the end."""
    ends = np.arange(len(links))
    while True:
        further = links[ends]
        going = further != NONE
        if not going.any():
            return ends
        ends[going] = further[going]


def _walk_chains(walk: Walk) -> None:
    # By region: the last operation that reached it, and the last that wrote it.
    regions, dropped, candidates, sums, begins, touched, written, before = walk.own
    e = walk.e
    with walk.operations() as operation, walk.when(walk.same(dropped[operation], I64(0))):
        candidate = candidates[operation]
        with walk.when(walk.is_real(candidate)):
            region = regions[sums[operation]]
            chained = walk.b.or_(walk.true(begins[candidate]), walk.is_real(before[candidate]))
            with (
                walk.when(walk.is_real(region), chained),
                walk.when(walk.same(touched[region], candidate)),
            ):
                kept = e.variable(I64(1))
                with (
                    walk.back(candidate, before) as member,
                    walk.accesses(member, Access.READ) as access,
                    walk.when(walk.b.not_(walk.same(access, sums[member]))),
                ):
                    read = regions[access]
                    with (
                        walk.when(walk.is_real(read)),
                        walk.when(walk.less(member, written[read])),
                    ):
                        kept.set(I64(0))
                with walk.when(walk.true(kept.get())):
                    before[operation] = candidate
        for kind, noted in ((Access.READ, (touched,)), (Access.WRITE, (touched, written))):
            with (
                walk.accesses(operation, kind) as access,
                walk.neighbours(regions[access]) as (other, _),
            ):
                for array in noted:
                    array[other] = operation


_CHAINS = walk_kernel("chains", 8, _walk_chains)
