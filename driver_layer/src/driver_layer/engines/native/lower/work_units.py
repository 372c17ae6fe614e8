"""Work units, each executed by one thread in order, and the queues that hold the units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driver_layer.engines.native.dispatch.table import Streams
from driver_layer.engines.native.dpu import Reuse
from driver_layer.engines.native.lower.arrays import Ints, equal_rows
from driver_layer.engines.native.lower.calls import Calls

_MIN_BYTES = 4096
"""Size below which reading an operand is faster than prefetching it."""

_AHEAD_BYTES = 512 << 10
"""Prefetch limit: a quarter of a recent second-level cache, half of an older one."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkUnits:
    """Calls in the order of the table's rows, grouped into units.

    Attributes:
        calls: calls in order.
        begins: first call of each unit, and the number of calls.
        queue: queue of each unit; within a level, units are sorted by queue.
        queues: number of queues.
    """

    calls: Calls
    begins: Ints
    queue: Ints
    queues: int

    def queue_bounds(self, levels: int) -> Ints:
        """Return the first unit of each queue, and the end of the last: [levels, queues + 1]."""
        count = levels * self.queues
        level = self.calls.level[self.begins[:-1]]
        first = np.searchsorted(level * self.queues + self.queue, np.arange(count + 1))
        index = self.queues * np.arange(levels)[:, None] + np.arange(self.queues + 1)
        return np.ascontiguousarray(first.astype(np.int64)[index])

    def streams(self, levels: int) -> Streams:
        """List the operands that each queue streams, and those to prefetch after each level.

        These exceed the caches: weights, and keys and values of attention. A waiting thread fetches
        the next of them, up to a part of the second-level cache.
        """
        calls = self.calls
        address, size = calls.streams()
        queue = np.repeat(self.queue, np.diff(self.begins))
        chosen = np.flatnonzero(size >= _MIN_BYTES)
        # Sorted by queue; within a queue, in the order of rows, and so of levels.
        chosen = chosen[np.argsort(queue[chosen], kind="stable")]
        spans = np.stack([address[chosen], np.minimum(size[chosen], _AHEAD_BYTES)], axis=1)
        ahead = np.zeros((levels, self.queues, 2), np.int64)
        bytes_before: Ints = np.concatenate([[0], np.cumsum(spans[:, 1])])
        for number in range(self.queues):
            first, last = np.searchsorted(queue[chosen], [number, number + 1])
            level = calls.level[chosen[first:last]]
            begin = first + np.searchsorted(level, np.arange(levels), side="right")
            end = (
                np.searchsorted(bytes_before, bytes_before[begin] + _AHEAD_BYTES, side="right") - 1
            )
            ahead[:, number, 0], ahead[:, number, 1] = (
                begin,
                np.minimum(np.maximum(end, begin), last),
            )
        return Streams(np.ascontiguousarray(spans), ahead)


def make_work_units(calls: Calls, queues: int) -> WorkUnits:
    """Sort calls, group them into units, and assign the units to queues.

    Within a level the largest calls come first, so that threads finish together; equal ones are
    sorted by the address that they stream from. Calls that pack the same weights form a unit: the
    first packs the weights, the others reuse them.
    """
    packed = _packing_groups(calls)
    address, _ = calls.streams()
    order = np.lexsort((calls.operation, address, packed, -calls.cost, calls.level))
    calls, packed = calls.take(order), packed[order]
    same = (packed[1:] == packed[:-1]) & (packed[1:] >= 0) & (calls.level[1:] == calls.level[:-1])
    follows, precedes = np.append(False, same), np.append(same, False)
    reuse_state = np.where(follows, Reuse.PRESENT, np.where(precedes, Reuse.KEEP, Reuse.NONE))
    reuse = np.array([one.reuse for one in calls.templates], np.int64)[calls.template]
    packing = packed >= 0
    calls.pool[calls.begin[packing] + reuse[packing]] = reuse_state[packing]
    begins = np.flatnonzero(~follows[: len(calls)])
    cost = np.add.reduceat(calls.cost, begins) if len(calls) else calls.cost
    queue = _assign_queues(calls.level[begins], cost, queues)
    by_call = np.repeat(queue, np.diff(begins, append=len(calls)))
    order = np.lexsort((np.arange(len(calls)), by_call, calls.level))
    begins = np.flatnonzero(~follows[order])
    ends = np.append(begins, len(calls)).astype(np.int64)
    return WorkUnits(calls.take(order), ends, by_call[order][begins], queues)


def _assign_queues(level: Ints, cost: Ints, queues: int) -> Ints:
    """Assign consecutive units of equal cost to one queue, in equal shares.

    Hardware prefetch beyond the end of a unit then serves the next one. If a run of equal units
    does not divide evenly, the next run of the level begins with another queue.
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


def _packing_groups(calls: Calls) -> Ints:
    """Number calls by the weights that they pack; -1 for calls that pack none."""
    numbers = np.full(len(calls), -1, np.int64)
    groups = calls.grouped(lambda one: one.spec.key if one.spec and one.packing_key else None)
    for template, members in groups:
        packed = calls.words(members, len(template.words))[:, template.packing_key]
        numbers[members] = equal_rows(packed)[1] + numbers.max() + 1
    return numbers
