"""The table of the dispatcher: rows, grouped to units, grouped to phases.

A row is a kernel with its arguments. The rows of a unit are executed by one thread, in order;
phases one after the other. The units of a phase lie in queues: a thread takes those of its own, and
then those left in others'. A thread that waits for the end of a phase prefetches what its queue
streams next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]

MOST_QUEUES = 8
"""Of more threads, some share one: to look into many queues for what is left takes long."""


class StateWord(IntEnum):
    """The words of a thread's state; all but ``QUEUE`` are the same for all threads."""

    ROWS = 0
    """Address of the rows: pairs of a kernel's address and that of its arguments."""
    UNITS = 1
    """Address of the first row of each unit, and the number of rows."""
    BOUNDS = 2
    """Address of the first unit of each queue and the one behind the last, by phase."""
    COUNT = 3
    """How many phases there are."""
    TAKEN = 4
    """Address of counters of units taken, by phase and queue."""
    DONE = 5
    """Address of a counter for each phase: units done."""
    FAILED = 6
    """Address of the row that gave a status other than 0, plus one."""
    QUEUES = 7
    """How many there are."""
    QUEUE = 8
    """The thread's own."""
    STREAMS = 9
    """Address of pairs: where bytes begin that will be read, and how many there are."""
    AHEAD = 10
    """Address of spans of these, begin and end, for each queue and phase: what is read next."""
    WORDS = 11


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """Operands that units stream from memory, which no cache holds.

    Attributes:
        spans: [streams, 2], addresses and bytes.
        ahead: [phases, queues, 2], those to fetch behind a phase: the first, and behind the last.
    """

    spans: Words
    ahead: Words

    @classmethod
    def none(cls, bounds: Words) -> Streams:
        """Nothing."""
        phases, queues = len(bounds), bounds.shape[1] - 1
        return cls(np.zeros((0, 2), np.int64), np.zeros((phases, queues, 2), np.int64))


@dataclass(slots=True, eq=False)
class Table:
    """A lowered program.

    Attributes:
        rows: [rows, 2], addresses of kernels and of arguments.
        units: the first row of each unit, and the number of rows.
        bounds: [phases, queues + 1], the first unit of each queue, and the one behind the last.
        scratch: bytes of scratch memory that a thread needs.
        streams: operands to prefetch.
        pool: the arguments of all kernels.
        keep: an object that must live as long as the table.
        states: [queues, StateWord.WORDS], the state of threads, by their queue.
    """

    rows: Words
    units: Words
    bounds: Words
    scratch: int
    streams: Streams
    pool: Words
    keep: object
    states: Words = field(init=False)
    _taken: Words = field(init=False)
    _done: Words = field(init=False)
    _failed: Words = field(init=False)

    def __post_init__(self) -> None:
        phases, queues = len(self.bounds), self.bounds.shape[1] - 1
        # A cache line for each counter, so that threads do not wait for each other's.
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
        """Get ready for a run."""
        self._taken[:] = 0
        self._done[:] = 0
        self._failed[:] = 0

    def with_arguments(self, pool: Words, streams: Streams) -> Table:
        """Return the same calls on other operands.

        Args:
            pool: laid out as this one's.
            streams: of these.
        """
        rows = self.rows.copy()
        own = rows[:, 1] != 0
        rows[own, 1] += pool.ctypes.data - self.pool.ctypes.data
        return Table(rows, self.units, self.bounds, self.scratch, streams, pool, self.keep)

    def arguments(self, row: int, count: int) -> Words:
        """The arguments that a row's kernel has."""
        begin = (int(self.rows[row, 1]) - self.pool.ctypes.data) // self.pool.itemsize
        return self.pool[begin : begin + count]

    @property
    def failure(self) -> int | None:
        """The row that failed in the last run."""
        row = int(self._failed[0])
        return row - 1 if row else None


_LINE = 8
"""Words of a cache line."""

COUNTER_BYTES = 8 * _LINE
