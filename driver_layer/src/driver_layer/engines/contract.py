"""The contract of engines: each turns a decoded task into something that can be run many times.

Preparing resolves addresses, checks that every byte is mapped, and may precompute; running only
moves or computes values. A prepared task stays valid until its descriptor or the context's mappings
change; the management core prepares it again then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from driver_layer.abi.shave import Instruction
from driver_layer.npu.bus import Bus

Run = Callable[[], None]
"""Executes a prepared task once. Raises DeviceFault if its data lead it astray (a gather)."""


class Engines(Protocol):
    """One set of engines: DMA, DPU and SHAVE."""

    def dma(self, descriptor: Any, bus: Bus) -> Run:
        """Prepare a transfer from a DMA_DESCRIPTOR record.

        Raises:
            DeviceFault: it is malformed, or touches memory that is not there.
        """
        ...

    def dpu(self, registers: Any, variants: Sequence[Any], tile: int, bus: Bus) -> Run:
        """Prepare the DPU_VARIANT records of one DPU_REGISTERS image, on one tile.

        Raises:
            DeviceFault: as for ``dma``.
        """
        ...

    def shave(self, program: Sequence[Instruction], args: bytes, tile: int, bus: Bus) -> Run:
        """Prepare a program with its argument block, on one tile.

        Raises:
            DeviceFault: as for ``dma``.
        """
        ...
