"""Byte-exact hazards of a schedule: a slow, exact alternative to ``dependencies`` for tests.

It keeps the last writer of each byte of CMX and DDR, and the last reader since for each queue;
strides are followed element by element.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from compiler_layer.elements import NUMPY
from compiler_layer.schedule.tasks import Region, Task, Transfer, regions_of
from compiler_layer.schedule.views import Space, View

_NOBODY = -1
Bytes = npt.NDArray[np.int64]
"""Offsets of bytes in a memory."""


class _History:
    """Last users of each byte of a memory."""

    def __init__(self) -> None:
        self._writer = np.full(0, _NOBODY, np.int64)
        self._readers: dict[Hashable, npt.NDArray[np.int64]] = {}

    def read(self, at: Bytes, task: int, queue: Hashable) -> set[int]:
        self._reach(int(at.max()))
        found = set(np.unique(self._writer[at]).tolist())
        self._of(queue)[at] = task
        return found - {_NOBODY}

    def write(self, at: Bytes, task: int) -> set[int]:
        self._reach(int(at.max()))
        found = set(np.unique(self._writer[at]).tolist())
        for queue in list(self._readers):
            found |= set(np.unique(self._of(queue)[at]).tolist())
            self._of(queue)[at] = _NOBODY
        self._writer[at] = task
        return found - {_NOBODY}

    def _of(self, queue: Hashable) -> npt.NDArray[np.int64]:
        known = self._readers.get(queue, np.full(0, _NOBODY, np.int64))
        if known.size < self._writer.size:
            known = self._readers[queue] = _grown(known, self._writer.size)
        return known

    def _reach(self, last: int) -> None:
        if last >= self._writer.size:
            self._writer = _grown(self._writer, 2 * last + 1)


def _grown(array: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    grown = np.full(size, _NOBODY, np.int64)
    grown[: array.size] = array
    return grown


def hazards(tasks: Sequence[Task], queues: Sequence[Hashable]) -> list[set[int]]:
    """Return, for each task, the earlier tasks that used a common byte, if one of the two writes.

    Of the readers of a byte, only each queue's last is returned: a queue's tasks end in order.

    Args:
        tasks: with addresses, in the order in which they are issued.
        queues: queue of each task.
    """
    memories: dict[Hashable, _History] = {}
    found: list[set[int]] = []
    for index, task in enumerate(tasks):
        after: set[int] = set()
        uses = sorted(_uses(task), key=lambda use: use[2])
        for memory, at, write in uses:
            history = memories.setdefault(memory, _History())
            after |= history.write(at, index) if write else history.read(at, index, queues[index])
        found.append(after - {index})
    return found


def _uses(task: Task) -> list[tuple[Hashable, Bytes, bool]]:
    """Return the bytes that a task reads and writes, by memory."""
    found: list[tuple[Hashable, Bytes, bool]] = []
    for region, tiles, write in regions_of(task.work):
        base = region.buffer.offset
        assert base is not None  # placed by ``schedule.order``
        found += [(("cmx", tile), base + _bytes(region), write) for tile in tiles]
    if isinstance(task.work, Transfer):
        for place, write in ((task.work.source, False), (task.work.target, True)):
            if isinstance(place, View) and _is_written(place):
                scratch = place.buffer.space is Space.SCRATCH
                memory: Hashable = "scratch" if scratch else place.buffer.shares or place.buffer
                found.append(
                    (memory, (place.buffer.offset if scratch else 0) + _bytes(place), write)
                )
    return found


def _is_written(view: View) -> bool:
    """Return whether a task may write to a view: never to weights, to inputs only of variables."""
    written = view.buffer.space in (Space.SCRATCH, Space.OUTPUT)
    return written or view.buffer.shares is not None


def _bytes(place: View | Region) -> Bytes:
    """Return the offsets of all bytes of a tensor in its buffer."""
    at = np.array([place.offset])
    for size, stride in zip(place.shape, place.strides, strict=True):
        if stride:
            at = (at[:, None] + np.arange(size) * stride).reshape(-1)
    return (at[:, None] + np.arange(NUMPY[place.element].itemsize)).reshape(-1)
