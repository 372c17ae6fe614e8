"""Cuts calls that threads cannot share evenly otherwise.

Attention has a product for each head of keys and values: three of them keep two threads busy for as
long as four. What is not merged, as few rows are not, is cut here, where a level has no multiple of
the threads of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.template import Growth, Template

_LEAST = 1 << 14
"""What a call must cost for a cut to be worth another call."""

_MULTIPLE = 32
"""Of columns: as many as fill a cache line in any type but those of less than 16 bits."""


def share(calls: Calls, threads: int) -> Calls:
    """Cut calls for so many threads, in as many parts each."""
    if threads == 1:
        return calls
    templates = calls.templates
    kernels: dict[str, list[int]] = {}
    for number, template in enumerate(templates):
        if template.shares is not None and template.spec is not None:
            kernels.setdefault(template.spec.key, []).append(number)
    left, shared = np.ones(len(calls), np.bool_), calls
    for numbers in kernels.values():
        large = np.flatnonzero(np.isin(calls.template, numbers) & (calls.cost >= _LEAST))
        alike = np.bincount(calls.level[large], minlength=1)[calls.level[large]]
        uneven = large[alike % threads > 0]
        left[uneven] = False
        for number in numbers:
            members = uneven[calls.template[uneven] == number]
            if len(members):
                words, owners, cost = _cut(calls, members, templates[number], threads)
                shared = shared.append(members[owners], words, cost)
    return shared.take(np.append(left, np.ones(len(shared) - len(left), np.bool_)))


def _cut(calls: Calls, members: Ints, template: Template, threads: int) -> tuple[Ints, Ints, Ints]:
    """Give the arguments of parts, which call each is of, and costs."""
    assert template.shares is not None
    words = calls.words(members, len(template.words))
    sizes = words[:, template.shares.size]
    length = -(-sizes // (threads * _MULTIPLE)) * _MULTIPLE
    counts = -(-sizes // length)
    owners = np.repeat(np.arange(len(members)), counts)
    number = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = number * length[owners]
    parts = words[owners]
    for growth in _blocks(template, template.shares):
        for pointer, stride in growth.moved:
            parts[:, pointer] += begins * parts[:, stride]
        parts[:, growth.size] = np.minimum(length[owners], sizes[owners] - begins)
    return parts, owners, calls.cost[members][owners] // counts[owners]


def _blocks(template: Template, growth: Growth) -> Iterator[Growth]:
    """The growth in the words of each part that operands lie in."""
    count = len(template.parts.borders) - 1 if template.parts is not None else 1
    for first in range(0, len(template.words), len(template.words) // count):
        moved = tuple((first + pointer, first + stride) for pointer, stride in growth.moved)
        yield Growth(first + growth.size, moved)
