"""Fusion of each reduction chain into one matmul (see ``reduction_chains``)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driver_layer.engines.native.lower.arrays import Ints
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.levels import Dependences
from driver_layer.engines.native.lower.reduction_chains import ReductionChains
from driver_layer.engines.native.lower.template import Template


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
    np.add.at(sizes, of_chain, _sizes(calls, members))
    np.add.at(costs, of_chain, calls.cost[members])
    calls = _lengthened(calls, ends, begins, sizes[operation[ends]])
    cost = calls.cost.copy()
    cost[ends] = costs[operation[ends]]
    return replace(calls, cost=cost).take(~chains.fused[operation])


def _sizes(calls: Calls, members: Ints) -> Ints:
    """Return the reduction size of some calls."""
    sizes = np.zeros(len(members), np.int64)
    used: list[int] = np.unique(calls.template[members]).tolist()
    for number in used:
        reduction = calls.templates[number].reduction
        assert reduction is not None  # only reductions are in chains
        sizes[calls.template[members] == number] = calls.templates[number].words[reduction.sizes[0]]
    return sizes


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
