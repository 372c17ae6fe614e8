"""Relocations that fit DMA descriptors to the strides of the caller's tensors.

A relocation of types 25 to 28 rewrites one side of a descriptor: width, dimensions, strides and
address. Its DMA symbol describes the tile of the tensor that the transfer accesses. Inner
dimensions that lie next to each other form the width; each other dimension keeps its stride. The
descriptor's number of dimensions stays, so a compiler must set it to the maximum.

Source: docs/reference/elf.md#dma-symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driver_layer.abi.elf import DMA_DIMS, RELA, Relocation
from driver_layer.abi.layout import RecordArray
from driver_layer.abi.tasks import DMA_DESCRIPTOR
from driver_layer.errors import RelocError
from driver_layer.npu.memory import Bytes

Strides = tuple[int, ...]
"""Strides of a caller's tensor in elements, innermost dimension first; empty for the dense one."""

SIDES: dict[Relocation, tuple[str, int]] = {
    # type: side of the descriptor, and bits of a symbol's unit of size
    Relocation.R_VPU_DMA_TASK_INPUT: ("src", 8),
    Relocation.R_VPU_DMA_TASK_OUTPUT: ("dst", 8),
    Relocation.R_VPU_DMA_TASK_INPUT_BIT: ("src", 1),
    Relocation.R_VPU_DMA_TASK_OUTPUT_BIT: ("dst", 1),
}
"""The supported relocations."""

_STRIDED = DMA_DIMS - 1
"""Dimensions of a descriptor beyond its width."""


@dataclass(frozen=True, slots=True)
class StridedTable:
    """The relocations of one section; construction checks types, offsets and symbol indices.

    Attributes:
        name: the relocation section's name, for errors.
        entries: RELA records.
        symbols: DMA_SYMBOL records.
        target_size: bytes of the patched section.
    """

    name: str
    entries: RecordArray
    symbols: RecordArray
    target_size: int

    def __post_init__(self) -> None:
        types = self.entries["r_info"] & np.uint64(0xFFFFFFFF)
        numbers = self.entries["r_info"] >> np.uint64(32)
        room = np.uint64(max(self.target_size - DMA_DESCRIPTOR.itemsize + 1, 0))
        for bad, problem in (
            (~np.isin(types, list(SIDES)), "a type that takes no DMA symbol"),
            (numbers >= len(self.symbols), f"no DMA symbol of {len(self.symbols)}"),
            (
                self.entries["r_offset"] >= room,
                f"the descriptor is outside the target's {self.target_size} bytes",
            ),
        ):
            if bad.any():
                raise RelocError(problem, self.name, int(bad.argmax()) * RELA.itemsize)


def fit_descriptors(
    table: StridedTable,
    data: Bytes,
    addresses: npt.NDArray[np.uint64],
    strides: Sequence[Strides],
) -> None:
    """Patch the descriptors of a section.

    Args:
        table: the relocations.
        data: the section's bytes.
        addresses: address of each tensor of the side.
        strides: strides of each tensor of the side.

    Raises:
        RelocError: a descriptor cannot express the tile in the tensor's strides.
    """
    for number, entry in enumerate(table.entries):
        side, unit = SIDES[Relocation(int(entry["r_info"]) & 0xFFFFFFFF)]
        symbol = table.symbols[int(entry["r_info"]) >> 32]
        tensor, offset = int(symbol["io_index"]), int(entry["r_offset"])
        try:
            tile = _tile(symbol, strides[tensor], unit)
        except ValueError as error:
            raise RelocError(str(error), table.name, number * RELA.itemsize) from None
        record = data[offset : offset + DMA_DESCRIPTOR.itemsize].view(DMA_DESCRIPTOR)[0]
        record[side] = (int(addresses[tensor]) + tile.begin) % (1 << 64)
        record[f"{side}_width"] = tile.width
        for dim, (size, stride) in enumerate(tile.dims, 1):
            record[f"{side}_dim{dim}"] = size - 1
            record[f"{side}_stride{dim}"] = stride


@dataclass(frozen=True, slots=True)
class _Tile:
    """One side of a transfer: begin in the tensor, width, and dimensions (size, stride); bytes."""

    begin: int
    width: int
    dims: tuple[tuple[int, int], ...]


def _tile(symbol: Any, strides: Strides, unit: int) -> _Tile:
    """Describe a symbol's tile in a tensor with the given strides, or with the symbol's own.

    Raises:
        ValueError: the reason why no descriptor has these sizes and strides.
    """
    element = unit * int(symbol["dma_size"])  # in bits, as all sizes up to the result
    given = [*strides, *[0] * DMA_DIMS][:DMA_DIMS] if strides else None
    of_tensor, of_tile = (
        [stride * element for stride in given or symbol[name].tolist()]
        for name in ("strides", "dma_strides")
    )
    offsets = symbol["tile_offsets"].tolist()
    begin = sum(offset * step for offset, step in zip(offsets, of_tensor, strict=True))
    dims = list(zip(symbol["dma_shapes"].tolist(), of_tile, strict=True))
    width = element
    while dims and dims[0][1] == width:
        width *= dims.pop(0)[0]
    outer = [(max(size, 1), step) for size, step in dims]
    if len(outer) > _STRIDED and outer.pop()[0] > 1:
        raise ValueError(f"{DMA_DIMS} strided dimensions; a descriptor has {_STRIDED}")
    outer += [(1, 0)] * (_STRIDED - len(outer))
    if any(bits % 8 for bits in (begin, width, *(step for _, step in outer))):
        raise ValueError("a tile of less than complete bytes")
    tile = _Tile(begin // 8, width // 8, tuple((size, step // 8) for size, step in outer))
    _check_fields(tile)
    return tile


def _check_fields(tile: _Tile) -> None:
    """Raise ValueError if a value is larger than its field of 32 bits; sizes 3 to 5 have 16."""
    if tile.width >> 32:
        raise ValueError(f"{tile.width} contiguous bytes")
    for number, (size, step) in enumerate(tile.dims, 1):
        if (size - 1) >> (32 if number < 3 else 16) or step >> 32:
            raise ValueError(f"dimension {number} of {size}, {step} bytes apart")
