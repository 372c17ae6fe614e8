"""Table of the dispatcher: rows, grouped into units, grouped into phases.

A row is a kernel with its arguments. One thread executes the rows of a unit, in order; phases run
one after the other. Each unit of a phase is in a queue: a thread takes units of its own queue,
then the units left in other queues. A thread that waits for the end of a phase prefetches the
operands that its queue streams next.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from driver_layer.engines.contract import Run

Words = npt.NDArray[np.int64]

MOST_QUEUES = 8
"""Upper bound; further threads share queues, as searching many queues for units takes long."""


class StateWord(IntEnum):
    """Words of a thread's state; all but ``QUEUE`` are equal for all threads."""

    ROWS = 0
    """Address of the rows: pairs of a kernel's address and its arguments' address."""
    UNITS = 1
    """Address of the first row of each unit, followed by the number of rows."""
    BOUNDS = 2
    """Address of the first unit of each queue and the end of the last, by phase."""
    COUNT = 3
    """Number of phases."""
    TAKEN = 4
    """Address of counters of taken units, by phase and queue."""
    DONE = 5
    """Address of counters of finished units, by phase."""
    FAILED = 6
    """Address of the word with the number of a failed row, plus one; 0 if none failed."""
    QUEUES = 7
    """Number of queues."""
    QUEUE = 8
    """Number of the thread's own queue."""
    STREAMS = 9
    """Address of pairs (address, bytes) of operands to prefetch."""
    AHEAD = 10
    """Address of ranges (begin, end) of these pairs, for each phase and queue."""
    WORDS = 11


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """Operands that units stream from memory and that exceed the caches.

    Attributes:
        spans: [streams, 2], addresses and bytes.
        ahead: [phases, queues, 2], range (begin, end) of streams to prefetch after a phase.
    """

    spans: Words
    ahead: Words

    @classmethod
    def none(cls, bounds: Words) -> Streams:
        """Return no streams."""
        phases, queues = len(bounds), bounds.shape[1] - 1
        return cls(np.zeros((0, 2), np.int64), np.zeros((phases, queues, 2), np.int64))


@dataclass(slots=True, eq=False)
class Table:
    """A lowered program.

    Attributes:
        rows: [rows, 2], addresses of kernels and of arguments.
        units: the first row of each unit, and the number of rows.
        bounds: [phases, queues + 1], the first unit of each queue, and the end of the last.
        scratch: bytes of scratch memory that a thread needs.
        streams: operands to prefetch.
        pool: arguments of all kernels.
        python: rows that the reference engine runs, by their numbers.
        states: [queues, StateWord.WORDS], states of threads, by queue.
    """

    rows: Words
    units: Words
    bounds: Words
    scratch: int
    streams: Streams
    pool: Words
    python: Mapping[int, PythonRow]
    states: Words = field(init=False)
    _taken: Words = field(init=False)
    _done: Words = field(init=False)
    _failed: Words = field(init=False)

    def __post_init__(self) -> None:
        phases, queues = len(self.bounds), self.bounds.shape[1] - 1
        # A cache line for each counter prevents false sharing between threads.
        self._taken = np.zeros((phases, queues, _LINE), np.int64)
        self._done = np.zeros((phases, _LINE), np.int64)
        self._failed = np.zeros(1, np.int64)
        self.states = np.zeros((queues, StateWord.WORDS), np.int64)
        for word, array in (
            (StateWord.ROWS, self.rows),
            (StateWord.UNITS, self.units),
            (StateWord.BOUNDS, self.bounds),
            (StateWord.TAKEN, self._taken),
            (StateWord.DONE, self._done),
            (StateWord.FAILED, self._failed),
            (StateWord.STREAMS, self.streams.spans),
            (StateWord.AHEAD, self.streams.ahead),
        ):
            assert array.dtype == np.int64
            assert array.flags.c_contiguous
            self.states[:, word] = array.ctypes.data
        self.states[:, StateWord.COUNT] = phases
        self.states[:, StateWord.QUEUES] = queues
        self.states[:, StateWord.QUEUE] = np.arange(queues)

    def reset(self) -> None:
        """Reset the counters before a run."""
        self._taken[:] = 0
        self._done[:] = 0
        self._failed[:] = 0

    def with_arguments(self, pool: Words, streams: Streams) -> Table:
        """Return the same calls with other arguments.

        Args:
            pool: the other arguments, in the layout of this table's pool.
            streams: operands to prefetch of these arguments.
        """
        rows = self.rows.copy()
        own = rows[:, 1] != 0
        rows[own, 1] += pool.ctypes.data - self.pool.ctypes.data
        return Table(rows, self.units, self.bounds, self.scratch, streams, pool, self.python)

    def arguments(self, row: int, count: int) -> Words:
        """Return the first ``count`` arguments of a row."""
        begin = (int(self.rows[row, 1]) - self.pool.ctypes.data) // self.pool.itemsize
        return self.pool[begin : begin + count]

    @property
    def failure(self) -> int | None:
        """Row that failed in the last run; None if none did."""
        row = int(self._failed[0])
        return row - 1 if row else None


_LINE = 8
"""Words of a cache line."""

COUNTER_BYTES = 8 * _LINE

_Row = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)

FAULT = 1
"""Status of a task that raised an exception."""


class PythonRow:
    """A task that the reference engine runs, as a kernel that calls back into Python.

    Args:
        run: the task.
    """

    def __init__(self, run: Run) -> None:
        def call(arguments: int, scratch: int) -> int:
            del arguments, scratch
            try:
                run()
            except Exception as error:  # native code passes on the status alone
                self.error = error
                return FAULT
            return 0

        self.error: Exception | None = None
        """The exception of the latest failed run."""
        self._function = _Row(call)

    @property
    def address(self) -> int:
        """Address of the C function."""
        return ctypes.cast(self._function, ctypes.c_void_p).value or 0
