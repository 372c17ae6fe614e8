"""Engines[Run] with memory to work on, and what all checks use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driver_layer.abi.dtypes import ELEMENT_TYPES, narrowed
from driver_layer.abi.dtypes import widened as widened_by_code
from driver_layer.abi.layout import Record
from driver_layer.abi.platforms import PLATFORMS, tile_base
from driver_layer.engines.contract import Engines, Run
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace, MemoryKind

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """Engines[Run] with memory to work on."""

    engines: Engines[Run]
    bus: Bus

    @staticmethod
    def make(engines: Engines[Run]) -> Bench:
        """Set up CMX and an empty address space."""
        return Bench(engines, Bus(Cmx(PLATFORMS["4000"]), AddressSpace()))

    def ddr(self, content: Array) -> int:
        """Put an array into DDR; give its address."""
        allocation = self.bus.space.allocate(max(content.nbytes, 1), MemoryKind.DMA)
        allocation.write(0, np.ascontiguousarray(content).tobytes())
        return allocation.address

    def cmx(self, offset: int, content: Array, tile: int = 0) -> int:
        """Put an array into a tile's CMX; give its address."""
        address = tile_base(tile) + offset
        raw = np.frombuffer(np.ascontiguousarray(content).tobytes(), np.uint8)
        self.bus.cmx.view(address, raw.size)[:] = raw
        return address

    def read(self, address: int, kind: str, count: int) -> Array:
        """Read an array back."""
        size = np.dtype(kind).itemsize * count
        return np.frombuffer(self.bus.read(address, size).tobytes(), kind)


def one(kind: Record, **fields: Any) -> Any:
    """Make a record from fields."""
    record = np.zeros(1, kind)
    for name, value in fields.items():
        record[name] = value
    return record[0]


def faults(action: Callable[[], object]) -> DeviceFault:
    """Assert that an action ends in a DeviceFault, and give it."""
    try:
        action()
    except DeviceFault as fault:
        return fault
    raise AssertionError("no DeviceFault was raised")


def stored(values: npt.NDArray[np.float32], kind: str) -> Array:
    """Give values as memory of an element type holds them."""
    return narrowed(ELEMENT_TYPES[kind].code, values)


def widened(values: Array, kind: str) -> npt.NDArray[np.float32]:
    """Give f32 values of what memory of an element type holds."""
    return widened_by_code(ELEMENT_TYPES[kind].code, values)
