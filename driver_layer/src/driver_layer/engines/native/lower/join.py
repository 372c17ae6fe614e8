"""Makes one product of each chain of workloads (see ``chains``)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.chains import Chains
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.levels import Freedom
from driver_layer.engines.native.lower.template import Template


def join_calls(calls: Calls, chains: Chains) -> Calls:
    """Let the last call of each chain begin where the first does, and do all of it."""
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
    np.add.at(sizes, of_chain, _sizes(calls, members))
    np.add.at(costs, of_chain, calls.cost[members])
    calls = _lengthened(calls, ends, begins, sizes[operation[ends]])
    cost = calls.cost.copy()
    cost[ends] = costs[operation[ends]]
    return replace(calls, cost=cost).take(~chains.absorbed[operation])


def _sizes(calls: Calls, members: Ints) -> Ints:
    """How much each of some calls sums up."""
    sizes = np.zeros(len(members), np.int64)
    used: list[int] = np.unique(calls.template[members]).tolist()
    for number in used:
        depth = calls.templates[number].depth
        assert depth is not None  # or it would be in no chain
        sizes[calls.template[members] == number] = calls.templates[number].words[depth.sizes[0]]
    return sizes


def _lengthened(calls: Calls, ends: Ints, begins: Ints, sizes: Ints) -> Calls:
    """Give calls the arguments of others, but for how much they sum up."""
    templates: list[Template] = list(calls.templates)
    template, begin, pool = calls.template.copy(), calls.begin.copy(), [calls.pool]
    top = len(calls.pool)
    kinds = np.stack([calls.template[begins], sizes], axis=1)
    different: list[tuple[int, int]] = np.unique(kinds, axis=0).tolist()
    for number, size in different:
        whole = calls.templates[number]
        depth = whole.depth
        assert depth is not None
        chosen = (kinds == (number, size)).all(axis=1)
        words = calls.words(begins[chosen], len(whole.words))
        words[:, list(depth.sizes)] = size
        template[ends[chosen]] = len(templates)
        templates.append(replace(whole, scratch=depth.scratch(size)))
        begin[ends[chosen]] = top + words.shape[1] * np.arange(len(words))
        top += words.size
        pool.append(words.reshape(-1))
    return replace(
        calls, templates=templates, template=template, begin=begin, pool=np.concatenate(pool)
    )


def join_accesses(freedom: Freedom, chains: Chains) -> Freedom:
    """Let the last of each chain reach all that the others do, and those nothing."""
    ground, absorbed = freedom.ground, chains.absorbed
    if not absorbed.any():
        return freedom
    owners = chains.last[ground.owners]
    order = np.argsort(owners, kind="stable")
    owners = owners[order]
    first = np.searchsorted(owners, np.arange(len(ground.first))).astype(np.int64)
    joined = replace(ground, first=first, kinds=ground.kinds[order], owners=owners)
    return replace(
        freedom, ground=joined, regions=freedom.regions[order], dropped=freedom.dropped | absorbed
    )
