"""Who does what: calls that one thread does one after the other, and the queues they wait in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driver_layer.engines.native.dpu import Reuse
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.groups import Ints, equal_rows


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Calls in the order of rows, cut into units.

    Attributes:
        calls: in their order.
        begins: the first call of each unit, and the number of calls.
        queue: of each unit; within a level, units lie in the order of their queues.
        queues: how many there are.
    """

    calls: Calls
    begins: Ints
    queue: Ints
    queues: int

    @property
    def level(self) -> Ints:
        """The level of each unit."""
        return self.calls.level[self.begins[:-1]]

    def borders(self, levels: int) -> Ints:
        """The first unit of each queue, and the one behind the last: [levels, queues + 1]."""
        count = levels * self.queues
        first = np.searchsorted(self.level * self.queues + self.queue, np.arange(count + 1))
        index = self.queues * np.arange(levels)[:, None] + np.arange(self.queues + 1)
        return np.ascontiguousarray(first.astype(np.int64)[index])


def make_units(calls: Calls, queues: int) -> Units:
    """Put calls in the order of rows, cut them into units, and share these out.

    Within a level the largest come first, so that threads end together; of equal ones, those that
    begin to read at lower addresses. Calls whose kernel keeps the same weights are a unit: the
    first of them packs, the others find what it packed.
    """
    kept = _kept_weights(calls)
    address, _ = calls.streams()
    order = np.lexsort((calls.operation, address, kept, -calls.cost, calls.level))
    calls, kept = calls.take(order), kept[order]
    same = (kept[1:] == kept[:-1]) & (kept[1:] >= 0) & (calls.level[1:] == calls.level[:-1])
    follows, precedes = np.append(False, same), np.append(same, False)
    told = np.where(follows, Reuse.PRESENT, np.where(precedes, Reuse.KEEP, Reuse.NONE))
    reuse = np.array([one.reuse for one in calls.templates], np.int64)[calls.template]
    keeping = kept >= 0
    calls.pool[calls.begin[keeping] + reuse[keeping]] = told[keeping]
    begins = np.flatnonzero(~follows[: len(calls)])
    cost = np.add.reduceat(calls.cost, begins) if len(calls) else calls.cost
    queue = _share_out(calls.level[begins], cost, queues)
    by_call = np.repeat(queue, np.diff(begins, append=len(calls)))
    order = np.lexsort((np.arange(len(calls)), by_call, calls.level))
    begins = np.flatnonzero(~follows[order])
    ends = np.append(begins, len(calls)).astype(np.int64)
    return Units(calls.take(order), ends, by_call[order][begins], queues)


def _share_out(level: Ints, cost: Ints, queues: int) -> Ints:
    """Give units queues: of those that cost the same, each queue gets some that are neighbours.

    What is read behind the end of one is then read for the next. Where they cannot be shared
    evenly, the next ones of the level begin with another queue.
    """
    count = len(level)
    new_level = np.append(True, level[1:] != level[:-1])[:count]
    new_run = new_level | np.append(True, cost[1:] != cost[:-1])[:count]
    starts = np.flatnonzero(new_run)
    run = np.cumsum(new_run) - 1
    length = np.diff(starts, append=count)[run]
    first_of_level = np.flatnonzero(new_level)[np.cumsum(new_level) - 1]
    before = starts[run] - first_of_level
    share = (np.arange(count) - starts[run]) * queues // np.maximum(length, 1)
    return ((share + before) % queues).astype(np.int64)


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
