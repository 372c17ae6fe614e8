"""The contracts of engines.

``Engines`` turn a decoded task into something that can be run many times. Preparing resolves
addresses, checks that every byte is mapped, and may precompute; running only moves or computes
values. A prepared task stays valid until its descriptor or the context's mappings change; the
management core prepares it again then.

An ``Executor`` does so for a whole program at once. ``TaskByTask`` makes one of any engines; one
that sees all tasks may run them in any way that leaves the same bytes as running them in order.
What CMX holds when a program begins is not defined: a program reads there what it wrote itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from driver_layer.abi.shave import Instruction
from driver_layer.npu.bus import Bus

if TYPE_CHECKING:
    from driver_layer.npu.order import Order
    from driver_layer.npu.program import Program

Run = Callable[[], None]
"""Executes a prepared task, or program, once. Raises DeviceFault if its data lead it astray (a
gather)."""


Made_co = TypeVar("Made_co", covariant=True)


class Engines(Protocol[Made_co]):
    """One set of engines: DMA, DPU and SHAVE.

    What executes gives a ``Run`` for each task; what only looks at tasks gives something else.
    """

    def dma(self, descriptor: Any, bus: Bus) -> Made_co:
        """Prepare a transfer from a DMA_DESCRIPTOR record.

        Raises:
            DeviceFault: it is malformed, or touches memory that is not there.
        """
        ...

    def dpu(self, registers: Any, variants: Sequence[Any], tile: int, bus: Bus) -> Made_co:
        """Prepare the DPU_VARIANT records of one DPU_REGISTERS image, on one tile.

        Raises:
            DeviceFault: as for ``dma``.
        """
        ...

    def shave(self, program: Sequence[Instruction], args: bytes, tile: int, bus: Bus) -> Made_co:
        """Prepare a program with its argument block, on one tile.

        Raises:
            DeviceFault: as for ``dma``.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Pieces of the host's memory in some order; they may overlap.

    Attributes:
        begins: addresses.
        sizes: bytes.
        rooms: bytes from there to the end of the allocation, which a gather may reach.
        writable: which of them a program may write.
    """

    begins: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    rooms: npt.NDArray[np.int64]
    writable: npt.NDArray[np.bool_]


@runtime_checkable
class Movable(Protocol):
    """A prepared program that can be taken along when its memory is elsewhere."""

    def __call__(self) -> None:
        """Execute it once, as any ``Run``."""
        ...

    def moved(self, spans: Spans, explain: Callable[[int], NoReturn]) -> Run | None:
        """Give the same program for other memory.

        Args:
            spans: where what it was prepared with lies now, in the same order.
            explain: says what is wrong with a step of the order, when that fails; raises.

        Returns:
            None if it has to be prepared anew: what depended on where things are, relative to each
            other, would not hold.
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
            bus: where they reach memory.
            spans: all of the program's memory, if others may want it moved; then what is returned
                may be ``Movable``.

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
