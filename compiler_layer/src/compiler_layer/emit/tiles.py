"""DMA symbols: tiles of arguments whose strides the caller chooses when it runs the blob.

Source: docs/reference/elf.md#dma-symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

import numpy as np

from compiler_layer.emit.elf import ElfWriter, Section
from compiler_layer.errors import UnsupportedModel
from compiler_layer.schedule.tasks import Place
from compiler_layer.schedule.views import View
from driver_layer.abi.elf import DMA_SYMBOL, SectionFlag, SectionType
from driver_layer.abi.layout import RecordArray

MAX_STRIDES = 5
"""Maximum number of strides that a caller can give."""


def is_tile(place: Place) -> TypeGuard[View]:
    """Return whether a place is a tile of an argument whose strides the caller chooses."""
    return isinstance(place, View) and place.buffer.strided


@dataclass(slots=True)
class TileTable:
    """The tiles of all inputs, or of all outputs; a tile's symbol is its number."""

    name: str
    flags: SectionFlag
    tiles: list[View] = field(default_factory=list[View])

    def number(self, tile: View) -> int:
        """Add a tile; return its number."""
        self.tiles.append(tile)
        return len(self.tiles) - 1

    def add_to(self, elf: ElfWriter) -> Section | int:
        """Add the section of the symbols; return 0 if there are none."""
        if not self.tiles:
            return 0
        kind, size = SectionType.VPU_SHT_DMA_SYMBOLS, DMA_SYMBOL.itemsize
        content = _symbols(self.tiles).tobytes()
        return elf.add(Section(self.name, kind, self.flags, content, align=8, entsize=size))


def _symbols(tiles: Sequence[View]) -> RecordArray:
    """Return the symbols of tiles, which are blocks of dense, row-major tensors.

    Raises:
        UnsupportedModel: an argument has more dimensions than callers can give strides for.
    """
    symbols = np.zeros(len(tiles), DMA_SYMBOL)
    symbols["shapes"] = symbols["dma_shapes"] = 1
    for symbol, tile in zip(symbols, tiles, strict=True):
        rank, itemsize = len(tile.shape), tile.itemsize
        if rank > MAX_STRIDES:
            raise UnsupportedModel(
                f"{tile.buffer.name!r} has {rank} dimensions: callers give at most {MAX_STRIDES} "
                "strides; merge some dimensions with a Reshape in the model"
            )
        symbol["io_index"], symbol["dma_size"] = tile.buffer.index, itemsize
        offset, outer = tile.offset, tile.buffer.nbytes
        for at, size, stride in zip(reversed(range(rank)), tile.shape, tile.strides, strict=True):
            symbol["shapes"][at] = outer // stride
            symbol["strides"][at] = symbol["dma_strides"][at] = stride // itemsize
            symbol["tile_offsets"][at], symbol["dma_shapes"][at] = offset // stride, size
            offset, outer = offset % stride, stride
    return symbols
