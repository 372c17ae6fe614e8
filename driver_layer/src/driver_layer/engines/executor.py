"""The contract of executors: whole programs at once.

``TaskByTask`` makes an executor of any engines. An executor that sees all tasks may run them in any
way that leaves the same bytes as running them in order. What CMX holds when a program begins is not
defined: a program reads there what it wrote itself.
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
    """Pieces of the host's memory in some order; they may overlap.

    Attributes:
        begins: addresses.
        sizes: bytes.
        rooms: bytes from there to the end of the allocation, which a gather may read.
        writable: which of them a program may write.
    """

    begins: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    rooms: npt.NDArray[np.int64]
    writable: npt.NDArray[np.bool_]


@runtime_checkable
class Rebasable(Protocol):
    """A prepared program that can be rebased: the same tasks on other memory."""

    def __call__(self) -> None:
        """Execute the program once, as any ``Run``."""
        ...

    def rebased(self, spans: Spans, explain: Callable[[int], NoReturn]) -> Run | None:
        """Return the same program for other memory.

        Args:
            spans: the other memory, in the order of the spans that the program was prepared with.
            explain: says why a step of the order failed; raises.

        Returns:
            None if the program has to be prepared anew: a relation between addresses that it
            relies on would not hold.
        """
        ...


class Executor(Protocol):
    """Prepares whole programs."""

    def order(self, program: Program, physical_barriers: int) -> Order:
        """Find the order in which the barriers let tasks run, as ``npu.order.issue_order`` does.

        Raises:
            DeviceFault: a deadlock, a barrier used wrongly, or one that is never completed.
        """
        ...

    def prepare(self, program: Program, order: Order, bus: Bus, spans: Spans | None = None) -> Run:
        """Prepare all tasks of a program, to be run in an order.

        Args:
            program: decoded.
            order: of its tasks.
            bus: where they access memory.
            spans: all of the program's memory, if other inferences may want the program rebased;
                then the program returned may be ``Rebasable``.

        Raises:
            DeviceFault: a task is malformed, or touches memory that is not there; it says which.
        """
        ...

    def explain(self, program: Program, order: Order, bus: Bus, step: int) -> NoReturn:
        """Say why a step of the order failed.

        Raises:
            DeviceFault: always.
        """
        ...
