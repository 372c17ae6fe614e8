"""Contract of engines that prepare single tasks; ``engines.executor`` prepares whole programs.

``Engines`` turn a decoded task into a callable that can run many times. Preparing resolves
addresses, checks that every byte is mapped, and may precompute; running only moves or computes
values. A prepared task stays valid until its descriptor or the context's mappings change; then
the management core prepares the task again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from driver_layer.abi.shave import Instruction
from driver_layer.npu.bus import Bus

Run = Callable[[], None]
"""Executes a prepared task or program once.

Raises DeviceFault if a gather's row is outside, OutOfMemory or, for a task, MemoryError if the host
has no memory left.
"""


Made_co = TypeVar("Made_co", covariant=True)


class Engines(Protocol[Made_co]):
    """A set of engines: DMA, DPU and SHAVE.

    An executing engine returns a ``Run`` for each task; an inspecting one another type.
    """

    def dma(self, descriptor: Any, bus: Bus) -> Made_co:
        """Prepare a transfer from a DMA_DESCRIPTOR record.

        Raises:
            DeviceFault: the task is malformed, or accesses unmapped memory.
        """
        ...

    def dpu(self, registers: Any, variants: Sequence[Any], tile: int, bus: Bus) -> Made_co:
        """Prepare all variants (DPU_VARIANT records) of one DPU_REGISTERS image on a tile.

        Raises:
            DeviceFault: as for ``dma``.
        """
        ...

    def shave(self, program: Sequence[Instruction], args: bytes, tile: int, bus: Bus) -> Made_co:
        """Prepare a SHAVE program with its argument block on a tile.

        Raises:
            DeviceFault: as for ``dma``.
        """
        ...
