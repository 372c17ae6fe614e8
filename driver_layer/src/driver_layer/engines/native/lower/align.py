"""Brings calls that can become one to the same level.

Rows of a product that are ready at different times, since a schedule for CMX made them so, run on
different levels; each would pack the weights anew. Where the later rows' level is none too late for
the earlier ones, they wait: no level is added, and what follows them is together by itself.
"""

from __future__ import annotations

import numpy as np

from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.groups import Ints, equal_rows
from driver_layer.engines.native.lower.levels import Freedom
from driver_layer.engines.native.lower.template import Template

_ROUNDS = 8
"""How many levels the calls of a product are brought to at most; others stay where they are."""


def align(calls: Calls, freedom: Freedom, earliest: Ints) -> Ints:
    """Give new levels of all operations.

    Args:
        calls: one for each operation that is executed, on its earliest level.
        freedom: on which levels they may run.
        earliest: levels of all operations.
    """
    floors = np.maximum(earliest, 0)
    latest = freedom.latest(earliest)
    for template, members in _growing(calls):
        operations = calls.operation[members]
        group = _products(calls.words(members, len(template.words)), template)
        floors[operations] = _common(group, earliest[operations], latest[operations])
    return freedom.earliest(floors)


def _growing(calls: Calls) -> list[tuple[Template, Ints]]:
    """The calls of each kernel that can do more rows than a task has."""
    kernels: dict[str, list[int]] = {}
    for number, template in enumerate(calls.templates):
        if template.growths and template.spec is not None:
            kernels.setdefault(template.spec.key, []).append(number)
    found = [
        (calls.templates[numbers[0]], np.flatnonzero(np.isin(calls.template, numbers)))
        for numbers in kernels.values()
    ]
    return [(template, members) for template, members in found if len(members)]


def _products(words: Ints, template: Template) -> Ints:
    """Number calls such that those of one product are equal: all but their rows is the same."""
    rows = template.growths[0]
    fixed = words.copy()
    fixed[:, [*(pointer for pointer, _ in rows.moved), rows.size]] = 0
    return equal_rows(fixed)[1]


def _common(group: Ints, earliest: Ints, latest: Ints) -> Ints:
    """Give the level that each call is to wait for.

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
