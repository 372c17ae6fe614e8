"""Load balancing: calls are split if threads cannot share a level equally.

Attention has a matmul for each KV head: with two threads, three take as long as four. Calls with
few rows are not merged; if their number on a level is not a multiple of the threads, the remainder
is split over all threads.

Keys of several heads interleave, token by token. Split into blocks of tokens, with all heads of a
block before the next block, they are read sequentially.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from driver_layer.engines.native.lower.arrays import Flags, Ints
from driver_layer.engines.native.lower.calls import Calls, MadeCalls
from driver_layer.engines.native.lower.template import ParallelDim, Template

_MIN_COST = 1 << 14
"""Cost below which a call is not split, as another call would cost more."""

_COLUMN_MULTIPLE = 32
"""Columns that fill a cache line in every type of at least 16 bits."""

_BLOCK_COLUMNS = 128
"""Columns of a block, if the columns of several calls interleave."""


def balance(calls: Calls, threads: int) -> Calls:
    """Split calls so that ``threads`` threads get equal shares."""
    gone: list[Ints] = []
    made: list[MadeCalls] = []
    for _, members in calls.grouped(
        lambda one: one.spec.key if one.spec and one.thread_dim else None
    ):
        large = members[calls.cost[members] >= _MIN_COST]
        interleaved = _interleaved(calls, large)
        chosen = interleaved | _remainder(calls, large, threads)
        gone.append(large[chosen])
        numbers: list[int] = np.unique(calls.template[large[chosen]]).tolist()
        for number in numbers:
            ours = chosen & (calls.template[large] == number)
            made.append(_split(calls, large[ours], interleaved[ours], threads))
    return calls.replaced(gone, made)


def _remainder(calls: Calls, chosen: Ints, threads: int) -> Flags:
    """Flag the smallest calls of a level, which remain after all threads have equally many."""
    level = calls.level[chosen]
    order = np.lexsort((-calls.cost[chosen], level))
    first = np.searchsorted(level[order], level[order])
    alike = np.bincount(level, minlength=1)[level[order]]
    found = np.zeros(len(chosen), np.bool_)
    found[order] = np.arange(len(chosen)) - first >= alike - alike % threads
    return found


def _interleaved(calls: Calls, chosen: Ints) -> Flags:
    """Flag calls whose streamed columns interleave with another call's on their level."""
    address, size = calls.streams()
    address, size, level = address[chosen], size[chosen], calls.level[chosen]
    order = np.lexsort((address, level))
    meets = (level[order][1:] == level[order][:-1]) & (
        address[order][1:] < (address + size)[order][:-1]
    )
    found = np.zeros(len(chosen), np.bool_)
    found[order] = np.append(meets, False) | np.append(False, meets)
    columns = [
        one.stream is not None
        and one.thread_dim is not None
        and one.stream.length == one.thread_dim.size
        for one in calls.templates
    ]
    return found & np.array(columns, np.bool_)[calls.template[chosen]]


def _split(calls: Calls, members: Ints, in_blocks: Flags, threads: int) -> MadeCalls:
    """Split calls of one template, into blocks or into a part for each thread."""
    template = calls.templates[int(calls.template[members[0]])]
    assert template.thread_dim is not None
    words = calls.words(members, len(template.words))
    sizes = words[:, template.thread_dim.size]
    even = -(-sizes // (threads * _COLUMN_MULTIPLE)) * _COLUMN_MULTIPLE
    length = np.where(in_blocks, np.minimum(even, _BLOCK_COLUMNS), even)
    counts = -(-sizes // length)
    owners = np.repeat(np.arange(len(members)), counts)
    number = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = number * length[owners]
    parts = words[owners]
    for dim in _each_part(template, template.thread_dim):
        for pointer, stride in dim.pointers:
            parts[:, pointer] += begins * parts[:, stride]
        parts[:, dim.size] = np.minimum(length[owners], sizes[owners] - begins)
    return members[owners], parts, calls.cost[members][owners] // counts[owners]


def _each_part(template: Template, dim: ParallelDim) -> Iterator[ParallelDim]:
    """Yield the dimension with the argument numbers of each part of split operands."""
    count = len(template.split.bounds) - 1 if template.split is not None else 1
    for first in range(0, len(template.words), len(template.words) // count):
        pointers = tuple((first + pointer, first + stride) for pointer, stride in dim.pointers)
        yield ParallelDim(first + dim.size, pointers)
