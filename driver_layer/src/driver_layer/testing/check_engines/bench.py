"""Engines with memory, and helpers of all checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driver_layer.abi.dtypes import ELEMENT_TYPES, narrowed
from driver_layer.abi.dtypes import widened as widened_by_code
from driver_layer.abi.layout import Record, filled
from driver_layer.abi.platforms import PLATFORMS, tile_base
from driver_layer.engines.contract import Engines, Run
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace, MemoryKind

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """Engines with the memory that their tasks use."""

    engines: Engines[Run]
    bus: Bus

    @staticmethod
    def make(engines: Engines[Run]) -> Bench:
        """Return a bench with CMX and an empty address space."""
        return Bench(engines, Bus(Cmx(PLATFORMS["4000"]), AddressSpace()))

    def ddr(self, content: Array) -> int:
        """Copy an array to DDR; return its address."""
        allocation = self.bus.space.allocate(max(content.nbytes, 1), MemoryKind.DMA)
        allocation.write(0, np.ascontiguousarray(content).tobytes())
        return allocation.address

    def cmx(self, offset: int, content: Array, tile: int = 0) -> int:
        """Copy an array to a tile's CMX; return its address."""
        address = tile_base(tile) + offset
        raw = np.frombuffer(np.ascontiguousarray(content).tobytes(), np.uint8)
        self.bus.cmx.view(address, raw.size)[:] = raw
        return address

    def read(self, address: int, kind: str, count: int) -> Array:
        """Read an array from DDR or CMX."""
        size = np.dtype(kind).itemsize * count
        return np.frombuffer(self.bus.read(address, size).tobytes(), kind)


def one(kind: Record, **fields: Any) -> Any:
    """Return a record with the given fields."""
    return filled(kind, **fields)[0]


def faults(action: Callable[[], object]) -> DeviceFault:
    """Assert that an action raises DeviceFault, and return the fault."""
    try:
        action()
    except DeviceFault as fault:
        return fault
    raise AssertionError("no DeviceFault was raised")


def stored(values: npt.NDArray[np.float32], kind: str) -> Array:
    """Convert f32 values to the stored form of an element type."""
    return narrowed(ELEMENT_TYPES[kind].code, values)


def widened(values: Array, kind: str) -> npt.NDArray[np.float32]:
    """Convert stored elements of a type to f32."""
    return widened_by_code(ELEMENT_TYPES[kind].code, values)
