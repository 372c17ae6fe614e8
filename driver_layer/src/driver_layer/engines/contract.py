"""The contract of engines: tasks, one by one. ``engines.executor`` has that of whole programs.

``Engines`` turn a decoded task into something that can be run many times. Preparing resolves
addresses, checks that every byte is mapped, and may precompute; running only moves or computes
values. A prepared task stays valid until its descriptor or the context's mappings change; the
management core prepares it again then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from driver_layer.abi.shave import Instruction
from driver_layer.npu.bus import Bus

Run = Callable[[], None]
"""Executes a prepared task, or program, once. Raises DeviceFault if its data lead it astray (a
gather)."""


Made_co = TypeVar("Made_co", covariant=True)


class Engines(Protocol[Made_co]):
    """One set of engines: DMA, DPU and SHAVE.

    Engines that execute return a ``Run`` for each task; those that only inspect return their own.
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
