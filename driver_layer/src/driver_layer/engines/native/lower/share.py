"""Cuts calls that threads cannot share evenly otherwise, or that read each other's neighbours.

Attention has a product for each head of keys and values: three of them keep two threads busy for as
long as four. What is not merged, as few rows are not, is cut here, where a level has no multiple of
the threads of it: threads get whole ones, and parts of what is left.

Keys of several heads lie side by side, token by token: in blocks of tokens, each of all heads in
turn, they are read as memory likes it, from one end to the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.template import Growth, Template

_LEAST = 1 << 14
"""What a call must cost for a cut to be worth another call."""

_MULTIPLE = 32
"""Of columns: as many as fill a cache line in any type but those of less than 16 bits."""

_BLOCK = 128
"""Columns of a block, where those of several calls lie side by side."""


def share(calls: Calls, threads: int) -> Calls:
    """Cut calls for so many threads."""
    templates = calls.templates
    kernels: dict[str, list[int]] = {}
    for number, template in enumerate(templates):
        if template.shares is not None and template.spec is not None:
            kernels.setdefault(template.spec.key, []).append(number)
    left, shared = np.ones(len(calls), np.bool_), calls
    for numbers in kernels.values():
        large = np.flatnonzero(np.isin(calls.template, numbers) & (calls.cost >= _LEAST))
        beside = _beside_others(calls, large)
        chosen = beside | _left_over(calls, large, threads)
        left[large[chosen]] = False
        for number in numbers:
            ours = chosen & (calls.template[large] == number)
            if ours.any():
                members = large[ours]
                words, owners, cost = _cut(calls, members, beside[ours], threads)
                shared = shared.append(members[owners], words, cost)
    return shared.take(np.append(left, np.ones(len(shared) - len(left), np.bool_)))


def _left_over(calls: Calls, chosen: Ints, threads: int) -> Flags:
    """Which of some calls are left, the smallest of a level, when all threads have equally many."""
    level = calls.level[chosen]
    order = np.lexsort((-calls.cost[chosen], level))
    first = np.searchsorted(level[order], level[order])
    alike = np.bincount(level, minlength=1)[level[order]]
    found = np.zeros(len(chosen), np.bool_)
    found[order] = np.arange(len(chosen)) - first >= alike - alike % threads
    return found


def _beside_others(calls: Calls, chosen: Ints) -> Flags:
    """Which of some calls read columns that lie among those of another on their level."""
    address, size = calls.streams()
    address, size, level = address[chosen], size[chosen], calls.level[chosen]
    order = np.lexsort((address, level))
    meets = (level[order][1:] == level[order][:-1]) & (
        address[order][1:] < (address + size)[order][:-1]
    )
    found = np.zeros(len(chosen), np.bool_)
    found[order] = np.append(meets, False) | np.append(False, meets)
    columns = [
        one.stream is not None and one.shares is not None and one.stream.length == one.shares.size
        for one in calls.templates
    ]
    return found & np.array(columns, np.bool_)[calls.template[chosen]]


def _cut(calls: Calls, members: Ints, in_blocks: Flags, threads: int) -> tuple[Ints, Ints, Ints]:
    """Cut calls of one template, in blocks or a part for each thread.

    Returns:
        The arguments of parts, which call each is of, and costs.
    """
    template = calls.templates[int(calls.template[members[0]])]
    assert template.shares is not None
    words = calls.words(members, len(template.words))
    sizes = words[:, template.shares.size]
    even = -(-sizes // (threads * _MULTIPLE)) * _MULTIPLE
    length = np.where(in_blocks, np.minimum(even, _BLOCK), even)
    counts = -(-sizes // length)
    owners = np.repeat(np.arange(len(members)), counts)
    number = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = number * length[owners]
    parts = words[owners]
    for growth in _each_part(template, template.shares):
        for pointer, stride in growth.moved:
            parts[:, pointer] += begins * parts[:, stride]
        parts[:, growth.size] = np.minimum(length[owners], sizes[owners] - begins)
    return parts, owners, calls.cost[members][owners] // counts[owners]


def _each_part(template: Template, growth: Growth) -> Iterator[Growth]:
    """The growth in the words of each part that operands lie in."""
    count = len(template.parts.borders) - 1 if template.parts is not None else 1
    for first in range(0, len(template.words), len(template.words) // count):
        moved = tuple((first + pointer, first + stride) for pointer, stride in growth.moved)
        yield Growth(first + growth.size, moved)
