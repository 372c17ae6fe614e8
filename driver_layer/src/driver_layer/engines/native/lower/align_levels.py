"""Alignment of levels: calls that could be merged are moved to the same level.

A schedule for CMX makes rows of one product ready at different times, on different levels, where
each would pack the weights anew. If the level of the later rows is not too late for the earlier
ones, these wait: no level is added, and their successors are aligned by themselves.
"""

from __future__ import annotations

import numpy as np

from driver_layer.engines.native.lower.arrays import Ints, equal_rows
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.levels import Dependences
from driver_layer.engines.native.lower.template import Template

_ROUNDS = 8
"""Align the calls of a product to at most so many levels; the others stay where they are."""


def align_levels(calls: Calls, dependences: Dependences, earliest: Ints) -> Ints:
    """Return new levels of all operations.

    Args:
        calls: one for each operation that is executed, on its earliest level.
        dependences: between them.
        earliest: ASAP levels of all operations.
    """
    floors = np.maximum(earliest, 0)
    latest = dependences.alap_levels(earliest)
    for template, members in _mergeable(calls):
        operations = calls.operation[members]
        group = _products(calls.words(members, len(template.words)), template)
        floors[operations] = _common(group, earliest[operations], latest[operations])
    return dependences.asap_levels(floors)


def _mergeable(calls: Calls) -> list[tuple[Template, Ints]]:
    """Return the calls of each kernel that takes more rows than those of a task."""
    kernels: dict[str, list[int]] = {}
    for number, template in enumerate(calls.templates):
        if template.parallel_dims and template.spec is not None:
            kernels.setdefault(template.spec.key, []).append(number)
    found = [
        (calls.templates[numbers[0]], np.flatnonzero(np.isin(calls.template, numbers)))
        for numbers in kernels.values()
    ]
    return [(template, members) for template, members in found if len(members)]


def _products(words: Ints, template: Template) -> Ints:
    """Number the product of each call: all but the rows of its calls is the same."""
    rows = template.parallel_dims[0]
    fixed = words.copy()
    fixed[:, [*(pointer for pointer, _ in rows.pointers), rows.size]] = 0
    return equal_rows(fixed)[1]


def _common(group: Ints, earliest: Ints, latest: Ints) -> Ints:
    """Return the level that each call is to wait for.

    The calls of a group wait for the last of them, unless that is too late for them; then for the
    last of those that are left.
    """
    level = earliest.copy()
    left = np.ones(len(group), np.bool_)
    for _ in range(_ROUNDS):
        if not left.any():
            break
        last = np.full(int(group.max()) + 1, -1, np.int64)
        np.maximum.at(last, group[left], earliest[left])
        waits = left & (latest >= last[group])
        level[waits] = last[group[waits]]
        left &= ~waits
    return level
