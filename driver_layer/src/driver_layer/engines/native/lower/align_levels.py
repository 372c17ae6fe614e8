"""Alignment of levels: mergeable calls move to one level.

The schedule for CMX lets rows of one matmul become ready on different levels, where each call
would pack the weights again. The earlier rows wait for the later ones if their ALAP level allows;
this adds no level, and successors are aligned separately.
"""

from __future__ import annotations

import numpy as np

from driver_layer.engines.native.lower.arrays import Ints, equal_rows
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.levels import Dependences
from driver_layer.engines.native.lower.template import Template

_ROUNDS = 8
"""Maximum number of levels to which the calls of a matmul are aligned; further calls stay."""


def align_levels(calls: Calls, dependences: Dependences, earliest: Ints) -> Ints:
    """Return new levels of all operations.

    Args:
        calls: one call for each executed operation.
        dependences: dependences between the operations.
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
    """Return the mergeable calls of each kernel."""
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
    """Number the matmul of each call; calls of one matmul differ only in their rows."""
    rows = template.parallel_dims[0]
    fixed = words.copy()
    fixed[:, [*(pointer for pointer, _ in rows.pointers), rows.size]] = 0
    return equal_rows(fixed)[1]


def _common(group: Ints, earliest: Ints, latest: Ints) -> Ints:
    """Return the level that each call waits for.

    The calls of a group wait for the last of them, except those whose ALAP level is too low; these
    wait for the last among themselves, and so on.
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
