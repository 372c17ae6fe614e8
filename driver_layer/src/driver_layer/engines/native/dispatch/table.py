"""What the dispatcher reads: rows, grouped to units, grouped to phases.

A row is a kernel with its arguments. The rows of a unit are executed by one thread, in order; the
units of a phase by any threads, in any order; phases one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]


class StateWord(IntEnum):
    """The words that all threads of a run share."""

    ROWS = 0
    """Address of the rows: pairs of a kernel's address and that of its arguments."""
    UNITS = 1
    """Address of the first row of each unit, and the number of rows."""
    PHASES = 2
    """Address of the first unit of each phase, and the number of units."""
    COUNT = 3
    """How many phases there are."""
    TAKEN = 4
    """Address of a counter for each phase: units taken."""
    DONE = 5
    """Address of a counter for each phase: units done."""
    FAILED_ROW = 6
    """The row that gave a status other than 0, plus one."""
    WORDS = 7


@dataclass(slots=True, eq=False)
class Table:
    """A program, flattened.

    Attributes:
        rows: [rows, 2], addresses of kernels and of arguments.
        units: the first row of each unit, and the number of rows.
        phases: the first unit of each phase, and the number of units.
        scratch: bytes of scratch memory that a thread needs.
        keep: what must live as long as this.
    """

    rows: Words
    units: Words
    phases: Words
    scratch: int
    keep: object
    state: Words = field(init=False)
    _counters: Words = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.phases) - 1
        # A cache line for each counter, so that threads do not wait for each other's.
        self._counters = np.zeros((2, count + 1, _LINE), np.int64)
        self.state = np.zeros(StateWord.WORDS, np.int64)
        self.state[StateWord.ROWS] = self.rows.ctypes.data
        self.state[StateWord.UNITS] = self.units.ctypes.data
        self.state[StateWord.PHASES] = self.phases.ctypes.data
        self.state[StateWord.COUNT] = count
        self.state[StateWord.TAKEN] = self._counters[0].ctypes.data
        self.state[StateWord.DONE] = self._counters[1].ctypes.data

    def reset(self) -> None:
        """Get ready for a run."""
        self._counters[:] = 0
        self.state[StateWord.FAILED_ROW] = 0

    @property
    def failure(self) -> int | None:
        """The row that failed in the last run."""
        row = int(self.state[StateWord.FAILED_ROW])
        return row - 1 if row else None


_LINE = 8
"""Words of a cache line."""

COUNTER_BYTES = 8 * _LINE
