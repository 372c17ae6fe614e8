"""Makes large calls of small ones whose operands continue each other.

The compiler cuts a product into workloads that fit into CMX. Here their operands lie in the memory
that they were to be copied from, side by side again: what runs at one level, and differs from its
neighbour by where it begins alone, is one product. It is cut anew into parts that suit the kernel.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.groups import Ints, equal_rows
from driver_layer.engines.native.lower.template import Growth, Template


def merge(calls: Calls, threads: int) -> Calls:
    """Merge what can be, along each dimension that a kernel can grow along; then cut it.

    Args:
        calls: all of them.
        threads: how many will share them.
    """
    kernels: dict[str, list[int]] = {}
    for number, template in enumerate(calls.templates):
        if template.growths and template.spec is not None:
            kernels.setdefault(template.spec.key, []).append(number)
    for numbers in kernels.values():
        template = calls.templates[numbers[0]]
        chosen = np.isin(calls.template, numbers)
        if chosen.any():
            calls = _merge_kernel(calls, chosen, template, threads)
    return calls


def _merge_kernel(calls: Calls, chosen: Flags, template: Template, threads: int) -> Calls:
    members = np.flatnonzero(chosen)
    words, levels = calls.words(members, len(template.words)), calls.level[members]
    costs = calls.cost[members].astype(np.float64)
    for growth in template.growths:
        words, levels, members, costs = _merge_along(growth, words, levels, members, costs)
    # Where a level has many calls anyway, they need not be cut for all threads to have work.
    alone = np.bincount(levels)[levels] < _MANY * threads
    words, owners = _cut(words, template, np.where(alone, threads, 1))
    size = words[:, template.growths[-1].size]
    shares = costs[owners] * size / np.bincount(owners, size)[owners]
    merged = calls.append(members[owners], words, shares.astype(np.int64))
    return merged.take(np.append(~chosen, np.ones(len(words), np.bool_)))


def _merge_along(
    growth: Growth, words: Ints, levels: Ints, members: Ints, costs: np.ndarray
) -> tuple[Ints, Ints, Ints, np.ndarray]:
    """Merge neighbours along one dimension."""
    pointers = [pointer for pointer, _ in growth.moved]
    strides = [stride for _, stride in growth.moved]
    fixed = words.copy()
    fixed[:, [*pointers, growth.size]] = 0
    group = equal_rows(np.concatenate([fixed, levels[:, None]], axis=1))[1]
    order = np.lexsort((words[:, pointers[0]], group))
    words, group = words[order], group[order]
    ends = words[:, pointers] + words[:, [growth.size]] * words[:, strides]
    # A stride of 0 repeats: its pointer stays.
    joins = (group[1:] == group[:-1]) & (ends[:-1] == words[1:, pointers]).all(axis=1)
    begins = np.flatnonzero(np.append(True, ~joins))
    merged = words[begins]
    merged[:, growth.size] = np.add.reduceat(words[:, growth.size], begins)
    first = order[begins]
    return merged, levels[first], members[first], np.add.reduceat(costs[order], begins)


_MANY = 2
"""Calls for each thread."""


def _cut(words: Ints, template: Template, sharers: Ints) -> tuple[Ints, Ints]:
    """Cut along the last growth; give the parts, and which call each is of."""
    growth = template.growths[-1]
    sizes = zip(words[:, growth.size].tolist(), sharers.tolist(), strict=True)
    pieces = [_borders(count, template.part, threads) for count, threads in sizes]
    owners = np.repeat(np.arange(len(words)), [len(piece) - 1 for piece in pieces])
    begins = np.concatenate([piece[:-1] for piece in pieces])
    cut = words[owners].copy()
    cut[:, growth.size] = np.concatenate([np.diff(piece) for piece in pieces])
    for pointer, stride in growth.moved:
        cut[:, pointer] += begins * cut[:, stride]
    return cut, owners


_LEAST = 32
"""Parts are multiples of it: as many columns as kernels have registers for."""


@cache
def _borders(count: int, part: int, threads: int) -> Ints:
    """Where parts begin, and the count.

    They are about equal, and as many for each thread, so that threads end together.
    """
    parts = -(-count // (part * threads)) * threads
    length = -(-count // (parts * _LEAST)) * _LEAST
    return np.array([*range(0, count, length), count])
