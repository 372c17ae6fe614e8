"""Prefetching of operands that exceed the caches: weights, and keys and values of attention.

A waiting thread fetches the operands that its queue streams next, up to a part of the second-level
cache.
"""

from __future__ import annotations

import numpy as np

from driver_layer.engines.native.dispatch.table import Streams
from driver_layer.engines.native.lower.arrays import Ints
from driver_layer.engines.native.lower.work_units import WorkUnits

_MIN_BYTES = 4096
"""Size below which reading an operand is faster than prefetching it."""

_AHEAD_BYTES = 512 << 10
"""Prefetch limit: a quarter of a recent second-level cache, half of an older one."""


def plan_prefetch(units: WorkUnits, levels: int) -> Streams:
    """List the operands that each queue streams, and those to prefetch after each level."""
    calls = units.calls
    address, size = calls.streams()
    queue = np.repeat(units.queue, np.diff(units.begins))
    chosen = np.flatnonzero(size >= _MIN_BYTES)
    # Sorted by queue; within a queue, in the order of rows, and so of levels.
    chosen = chosen[np.argsort(queue[chosen], kind="stable")]
    spans = np.stack([address[chosen], np.minimum(size[chosen], _AHEAD_BYTES)], axis=1)
    ahead = np.zeros((levels, units.queues, 2), np.int64)
    bytes_before: Ints = np.concatenate([[0], np.cumsum(spans[:, 1])])
    for number in range(units.queues):
        first, last = np.searchsorted(queue[chosen], [number, number + 1])
        level = calls.level[chosen[first:last]]
        begin = first + np.searchsorted(level, np.arange(levels), side="right")
        end = np.searchsorted(bytes_before, bytes_before[begin] + _AHEAD_BYTES, side="right") - 1
        ahead[:, number, 0], ahead[:, number, 1] = begin, np.minimum(np.maximum(end, begin), last)
    return Streams(np.ascontiguousarray(spans), ahead)
