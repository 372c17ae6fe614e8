"""Contract of executors, which prepare whole programs.

``TaskByTask`` turns any engines into an executor. An executor that sees all tasks may reorder or
merge them if memory ends up with the same bytes as after running them in order. CMX is undefined
when a program begins: a program must write CMX before it reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from driver_layer.engines.contract import Run
from driver_layer.npu.bus import Bus
from driver_layer.npu.order import Order
from driver_layer.npu.program import Program


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Address ranges of the host's memory, which may overlap.

    Attributes:
        begins: addresses.
        sizes: bytes.
        rooms: bytes from the address to the end of the allocation, which a gather may read.
        writable: True for the ranges that a program may write.
    """

    begins: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    rooms: npt.NDArray[np.int64]
    writable: npt.NDArray[np.bool_]


@runtime_checkable
class Rebasable(Protocol):
    """A prepared program that can be rebased to other memory."""

    def __call__(self) -> None:
        """Execute the program once."""
        ...

    def rebased(self, spans: Spans, explain: Callable[[int], NoReturn]) -> Run | None:
        """Return the same program for other memory.

        Args:
            spans: the other memory, in the order of the spans that the program was prepared with.
            explain: raises the fault of a step of the order.

        Returns:
            The program; None if it must be prepared again, because the other addresses break a
            relation that it relies on.
        """
        ...


class Executor(Protocol):
    """An executor of whole programs."""

    def order(self, program: Program, physical_barriers: int) -> Order:
        """Return the order in which the barriers let tasks run, as ``npu.order.issue_order`` does.

        Raises:
            DeviceFault: a deadlock, a wrongly used barrier, or a barrier that never completes.
        """
        ...

    def prepare(self, program: Program, order: Order, bus: Bus, spans: Spans | None = None) -> Run:
        """Prepare all tasks of a program.

        Args:
            program: the decoded program.
            order: order of its tasks.
            bus: memory that the tasks access.
            spans: all memory of the program, if other inferences may rebase it; then the returned
                program may be ``Rebasable``.

        Raises:
            DeviceFault: a task is malformed, or accesses unmapped memory; the fault names the task.
        """
        ...
