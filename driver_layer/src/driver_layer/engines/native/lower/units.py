"""Who does what: calls that one thread does one after the other."""

from __future__ import annotations

import numpy as np

from driver_layer.engines.native.dpu import Reuse
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.groups import Ints, equal_rows


def make_units(calls: Calls) -> tuple[Calls, Ints]:
    """Put calls in the order of rows, and cut them into units.

    Within a level the largest come first, so that threads end together. Calls whose kernel keeps
    the same weights are a unit: the first of them packs, the others find what it packed.

    Returns:
        The calls in their order; the first call of each unit, and the number of calls.
    """
    kept = _kept_weights(calls)
    order = np.lexsort((calls.operation, kept, -calls.cost, calls.level))
    calls, kept = calls.take(order), kept[order]
    same = (kept[1:] == kept[:-1]) & (kept[1:] >= 0) & (calls.level[1:] == calls.level[:-1])
    follows, precedes = np.append(False, same), np.append(same, False)
    told = np.where(follows, Reuse.PRESENT, np.where(precedes, Reuse.KEEP, Reuse.NONE))
    reuse = np.array([one.reuse for one in calls.templates], np.int64)[calls.template]
    keeping = kept >= 0
    calls.pool[calls.begin[keeping] + reuse[keeping]] = told[keeping]
    begins = np.flatnonzero(~follows[: len(calls)])
    return calls, np.append(begins, len(calls)).astype(np.int64)


def _kept_weights(calls: Calls) -> Ints:
    """Give calls that can follow each other with the same weights equal numbers, others -1."""
    numbers = np.full(len(calls), -1, np.int64)
    widest = max((len(one.kept) for one in calls.templates), default=0)
    kernels: dict[str, int] = {}
    keys: list[Ints] = []
    found: list[Ints] = []
    for number, template in enumerate(calls.templates):
        if not template.kept or template.spec is None:
            continue
        members = np.flatnonzero(calls.template == number)
        rows = np.zeros((len(members), widest + 1), np.int64)
        rows[:, 0] = kernels.setdefault(template.spec.key, len(kernels))
        words = calls.words(members, len(template.words))
        rows[:, 1 : len(template.kept) + 1] = words[:, template.kept]
        keys.append(rows)
        found.append(members)
    if found:
        numbers[np.concatenate(found)] = equal_rows(np.concatenate(keys))[1]
    return numbers
