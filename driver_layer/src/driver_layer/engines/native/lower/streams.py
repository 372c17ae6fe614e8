"""What units will read of memory that no cache holds: weights, and keys and values of attention.

Who waits for others meanwhile fetches what its queue begins with next, as much as a second cache
has room for beside what it is used for.
"""

from __future__ import annotations

import numpy as np

from driver_layer.engines.native.dispatch.table import Streams
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.units import Units

_LEAST = 4096
"""Bytes: shorter ones are there before they are asked for."""

_MOST = 512 << 10
"""Bytes that are fetched ahead: a quarter of a second cache of today, half of one of before."""


def find_streams(units: Units, levels: int) -> Streams:
    """List what each queue streams, and what of that comes behind each level."""
    calls = units.calls
    address, size = calls.streams()
    queue = np.repeat(units.queue, np.diff(units.begins))
    chosen = np.flatnonzero(size >= _LEAST)
    # By queue; within one, in the order of rows, and so of levels.
    chosen = chosen[np.argsort(queue[chosen], kind="stable")]
    spans = np.stack([address[chosen], np.minimum(size[chosen], _MOST)], axis=1)
    ahead = np.zeros((levels, units.queues, 2), np.int64)
    bytes_before: Ints = np.concatenate([[0], np.cumsum(spans[:, 1])])
    for number in range(units.queues):
        first, last = np.searchsorted(queue[chosen], [number, number + 1])
        level = calls.level[chosen[first:last]]
        begin = first + np.searchsorted(level, np.arange(levels), side="right")
        end = np.searchsorted(bytes_before, bytes_before[begin] + _MOST, side="right") - 1
        ahead[:, number, 0], ahead[:, number, 1] = begin, np.minimum(np.maximum(end, begin), last)
    return Streams(np.ascontiguousarray(spans), ahead)
