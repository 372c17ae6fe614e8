"""Merging of calls with adjoining operands into large calls.

The compiler tiles a matmul into workloads that fit into CMX. After copy propagation their operands
are in memory, where they adjoin: calls of one level that differ only in their begin are one
matmul. Its kernel is chosen again, as only now its number of rows is known, and it is tiled to suit
the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np

from driver_layer.engines.native.lower.arrays import Ints, equal_rows
from driver_layer.engines.native.lower.calls import Calls, MadeCalls
from driver_layer.engines.native.lower.template import ParallelDim, Template


def merge_calls(calls: Calls, threads: int) -> Calls:
    """Merge calls along each parallel dimension of their kernel, then tile them.

    Args:
        calls: all calls.
        threads: number of threads that share the calls.
    """
    calls = _choose_kernels(_remade(calls, _merge))
    return _remade(calls, partial(_tiles_of, threads=threads))


def _remade(calls: Calls, make: Callable[[Calls, Template, Ints], MadeCalls]) -> Calls:
    """Replace the calls of each kernel that has parallel dimensions."""
    groups = calls.mergeable()
    made = [make(calls, template, members) for template, members in groups]
    return calls.replaced([members for _, members in groups], made)


def _merge(calls: Calls, template: Template, members: Ints) -> MadeCalls:
    words, levels = calls.words(members, len(template.words)), calls.level[members]
    costs = calls.cost[members].astype(np.float64)
    for dim in template.parallel_dims:
        words, levels, members, costs = _merge_along(dim, words, levels, members, costs)
    return members, words, costs.astype(np.int64)


def _choose_kernels(calls: Calls) -> Calls:
    """Choose the kernels of merged calls."""
    templates, numbers = list(calls.templates), calls.template.copy()
    for template, members in calls.mergeable():
        words = calls.words(members, len(template.words))
        _, length = equal_rows(words[:, [template.parallel_dims[0].size]])
        for number in range(int(length.max()) + 1):
            alike = length == number
            numbers[members[alike]] = len(templates)
            templates.append(template.after_merging(template, words[alike]))
    return replace(calls, templates=templates, template=numbers)


def _tiles_of(calls: Calls, template: Template, members: Ints, threads: int) -> MadeCalls:
    words, levels = calls.words(members, len(template.words)), calls.level[members]
    costs = calls.cost[members]
    # A level with many calls occupies all threads without more tiles.
    alone = np.bincount(levels)[levels] < _CALLS_PER_THREAD * threads
    words, owners = _tile(words, template, np.where(alone, threads, 1))
    size = words[:, template.parallel_dims[-1].size]
    shares = costs[owners] * size / np.bincount(owners, size)[owners]
    return members[owners], words, shares.astype(np.int64)


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
    # An operand with stride 0 repeats, so its pointer is equal in all calls.
    joins = (group[1:] == group[:-1]) & (ends[:-1] == words[1:, pointers]).all(axis=1)
    begins = np.flatnonzero(np.append(True, ~joins))
    merged = words[begins]
    merged[:, dim.size] = np.add.reduceat(words[:, dim.size], begins)
    first = order[begins]
    return merged, levels[first], members[first], np.add.reduceat(costs[order], begins)


_CALLS_PER_THREAD = 2
"""Calls per thread from which a level is not tiled further to occupy threads."""


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
"""Divisor of tile lengths: the number of columns that kernels have registers for."""


@cache
def _boundaries(count: int, tile: int, threads: int) -> Ints:
    """Return the begins of tiles, and the count.

    Tiles are nearly equal, and their number is a multiple of the threads, which finish together.
    """
    tiles = -(-count // (tile * threads)) * threads
    length = -(-count // (tiles * _COLUMN_MULTIPLE)) * _COLUMN_MULTIPLE
    return np.array([*range(0, count, length), count])
