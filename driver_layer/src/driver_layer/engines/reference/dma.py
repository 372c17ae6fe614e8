"""DMA in numpy: strided copies, fills and gathers.

Source: docs/reference/elf.md#dma-descriptors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from driver_layer.abi.tasks import DMA_MAX_BYTES, DmaCfg
from driver_layer.engines.contract import Run
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus
from driver_layer.npu.memory import Bytes

_STRIDED_DIMS = 5


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a transfer: ``dims`` runs of ``width`` bytes, outermost first."""

    address: int
    width: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.width * math.prod(self.dims)

    @property
    def extent(self) -> int:
        """Bytes from the first byte to the last."""
        reach = sum((dim - 1) * stride for dim, stride in zip(self.dims, self.strides, strict=True))
        return reach + self.width

    def step(self) -> int:
        """Widest element, up to 8 bytes, that divides the width and all strides."""
        return math.gcd(8, self.width, *self.strides)

    def view(self, data: Bytes, element: int) -> Any:
        """Return the bytes as an array of ``element``-byte integers, in order."""
        return np.ndarray(
            (*self.dims, self.width // element),
            f"u{element}",
            data,
            strides=(*self.strides, element),
        )


def _side(record: Any, side: Literal["src", "dst"]) -> _Side:
    used = int(record["cfg"]) & DmaCfg.NUM_DIM
    if used > _STRIDED_DIMS:
        raise DeviceFault(f"a transfer of {used + 1} dimensions is not supported")
    order = range(used, 0, -1)
    return _Side(
        address=int(record[side]) & ((1 << 48) - 1),
        width=int(record[f"{side}_width"]),
        dims=tuple(int(record[f"{side}_dim{n}"]) + 1 for n in order),
        strides=tuple(int(record[f"{side}_stride{n}"]) for n in order),
    )


def prepare_dma(descriptor: Any, bus: Bus) -> Run:
    """Prepare a transfer; see ``engines.contract.Engines.dma``."""
    cfg = int(descriptor["cfg"])
    dst = _side(descriptor, "dst")
    if not 0 < dst.size <= DMA_MAX_BYTES:
        raise DeviceFault(f"a transfer of {dst.size} bytes is not possible", address=dst.address)
    if cfg & DmaCfg.MEMSET_EN:
        return _prepare_fill(dst, int(descriptor["memset_data"]) & 0xFF, bus)
    if cfg & DmaCfg.SRC_LIST == DmaCfg.SRC_LIST_RELATIVE:
        return _prepare_gather(descriptor, dst, bus)
    return _prepare_copy(_side(descriptor, "src"), dst, bus)


def _prepare_fill(dst: _Side, value: int, bus: Bus) -> Run:
    targets = [dst.view(data, 1) for data in bus.write(dst.address, dst.extent)]

    def run() -> None:
        for target in targets:
            target.fill(value)

    return run


def _prepare_copy(src: _Side, dst: _Side, bus: Bus) -> Run:
    if src.size != dst.size:
        raise DeviceFault(f"a transfer reads {src.size} bytes, but writes {dst.size}")
    element = math.gcd(src.step(), dst.step())
    source = src.view(bus.read(src.address, src.extent), element)
    targets = [dst.view(data, element) for data in bus.write(dst.address, dst.extent)]
    same_shape = all(target.shape == source.shape for target in targets)

    def run() -> None:
        values = source if same_shape else source.reshape(-1)
        for target in targets:
            target[...] = values if same_shape else values.reshape(target.shape)

    return run


def row_outside(rows: Any, length: int) -> str:
    """Describe the first row number that is outside a table; empty if all are inside.

    Args:
        rows: row numbers, i64.
        length: rows of the table.
    """
    outside = rows[(rows < 0) | (rows >= length)]
    return f"a gather reads row {outside[0]} of a table of {length}" if outside.size else ""


def _prepare_gather(descriptor: Any, dst: _Side, bus: Bus) -> Run:
    """Prepare a gather: rows ``list[i]`` of a table are written one after the other."""
    width = int(descriptor["src_width"])
    pitch = int(descriptor["src_stride1"])
    count = int(descriptor["src_dim1"]) + 1
    base = int(descriptor["src"]) & ((1 << 48) - 1)
    if width <= 0 or pitch < width or dst.size != width * count:
        raise DeviceFault(f"a gather of {count} rows of {width} bytes, {pitch} apart", address=base)
    rows = bus.read(int(descriptor["src_list"]), count * 8).view("<i8")
    allocation = bus.allocation(base)
    if allocation is None:
        raise DeviceFault("a gather reads unmapped memory", address=base)
    told = int(descriptor["src_dim2"])
    length = told or (allocation.end - base - width) // pitch + 1
    held = bus.read(base, (length - 1) * pitch + width)
    table = np.ndarray((length, width), "u1", held, strides=(pitch, 1))
    targets = [dst.view(data, 1) for data in bus.write(dst.address, dst.extent)]

    def run() -> None:
        if outside := row_outside(rows, length):
            raise DeviceFault(outside, address=base)
        for target in targets:
            target[...] = table[rows].reshape(target.shape)

    return run
