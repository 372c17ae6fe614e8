"""Merging of calls whose operands adjoin: large calls instead of small ones.

The compiler tiles a product into workloads that fit into CMX. Here their operands are redirected to
memory, where they adjoin again: calls of one level that differ only in where they begin are one
product. It is tiled anew to suit the kernel.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from driver_layer.engines.native.lower.arrays import Flags, Ints, equal_rows
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.template import ParallelDim, Template


def merge_calls(calls: Calls, threads: int) -> Calls:
    """Merge calls along each parallel dimension of their kernel, then tile them.

    Args:
        calls: all.
        threads: how many will share them.
    """
    kernels: dict[str, list[int]] = {}
    for number, template in enumerate(calls.templates):
        if template.parallel_dims and template.spec is not None:
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
    for dim in template.parallel_dims:
        words, levels, members, costs = _merge_along(dim, words, levels, members, costs)
    # A level with many calls has work for all threads without more tiles.
    alone = np.bincount(levels)[levels] < _CALLS_PER_THREAD * threads
    words, owners = _tile(words, template, np.where(alone, threads, 1))
    size = words[:, template.parallel_dims[-1].size]
    shares = costs[owners] * size / np.bincount(owners, size)[owners]
    merged = calls.append(members[owners], words, shares.astype(np.int64))
    return merged.take(np.append(~chosen, np.ones(len(words), np.bool_)))


def _merge_along(
    dim: ParallelDim, words: Ints, levels: Ints, members: Ints, costs: np.ndarray
) -> tuple[Ints, Ints, Ints, np.ndarray]:
    """Merge adjoining calls along one dimension."""
    pointers = [pointer for pointer, _ in dim.pointers]
    strides = [stride for _, stride in dim.pointers]
    fixed = words.copy()
    fixed[:, [*pointers, dim.size]] = 0
    group = equal_rows(np.concatenate([fixed, levels[:, None]], axis=1))[1]
    order = np.lexsort((words[:, pointers[0]], group))
    words, group = words[order], group[order]
    ends = words[:, pointers] + words[:, [dim.size]] * words[:, strides]
    # A stride of 0 repeats: its pointer stays.
    joins = (group[1:] == group[:-1]) & (ends[:-1] == words[1:, pointers]).all(axis=1)
    begins = np.flatnonzero(np.append(True, ~joins))
    merged = words[begins]
    merged[:, dim.size] = np.add.reduceat(words[:, dim.size], begins)
    first = order[begins]
    return merged, levels[first], members[first], np.add.reduceat(costs[order], begins)


_CALLS_PER_THREAD = 2
"""A level with so many calls has enough of them."""


def _tile(words: Ints, template: Template, sharers: Ints) -> tuple[Ints, Ints]:
    """Tile calls along the last parallel dimension; return the tiles, and the call of each."""
    dim = template.parallel_dims[-1]
    sizes = zip(words[:, dim.size].tolist(), sharers.tolist(), strict=True)
    pieces = [_boundaries(count, template.tile, threads) for count, threads in sizes]
    owners = np.repeat(np.arange(len(words)), [len(piece) - 1 for piece in pieces])
    begins = np.concatenate([piece[:-1] for piece in pieces])
    tiles = words[owners].copy()
    tiles[:, dim.size] = np.concatenate([np.diff(piece) for piece in pieces])
    for pointer, stride in dim.pointers:
        tiles[:, pointer] += begins * tiles[:, stride]
    return tiles, owners


_COLUMN_MULTIPLE = 32
"""Tiles are multiples of it: as many columns as kernels have registers for."""


@cache
def _boundaries(count: int, tile: int, threads: int) -> Ints:
    """Return where tiles begin, and the count.

    Tiles are about equal, and as many for each thread, so that threads end together.
    """
    tiles = -(-count // (tile * threads)) * threads
    length = -(-count // (tiles * _COLUMN_MULTIPLE)) * _COLUMN_MULTIPLE
    return np.array([*range(0, count, length), count])
