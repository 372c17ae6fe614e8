"""Reference engines as one class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from driver_layer.abi.shave import Instruction
from driver_layer.engines.contract import Run
from driver_layer.engines.reference.dma import prepare_dma
from driver_layer.engines.reference.dpu import prepare_dpu
from driver_layer.engines.reference.shave import prepare_shave
from driver_layer.npu.bus import Bus


class ReferenceEngines:
    """DMA, DPU and SHAVE in numpy; satisfies ``engines.contract.Engines``."""

    def dma(self, descriptor: Any, bus: Bus) -> Run:
        """Prepare a transfer."""
        return prepare_dma(descriptor, bus)

    def dpu(self, registers: Any, variants: Sequence[Any], tile: int, bus: Bus) -> Run:
        """Prepare a workload."""
        return prepare_dpu(registers, variants, tile, bus)

    def shave(self, program: Sequence[Instruction], args: bytes, tile: int, bus: Bus) -> Run:
        """Prepare a kernel."""
        return prepare_shave(program, args, tile, bus)
