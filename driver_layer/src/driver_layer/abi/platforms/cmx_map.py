"""The CMX address map: CMX in the device's address space, and the regions of a tile.

Source: npu_compiler (C); docs/reference/npu.md#cmx-map.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

CMX_BASE = 0x40000000
"""Start of CMX in the device's address space (C)."""

TILE_SELECT_SHIFT = 21
"""Address bits 21 to 26 select tiles, one bit each; several bits make a DMA write to them all (C).

Tile 0 is therefore at 0x40200000, tile 1 at 0x40400000, tile 2 at 0x40800000."""

TILE_SELECT_MASK = 0x3F << TILE_SELECT_SHIFT
TILE_OFFSET_MASK = (1 << TILE_SELECT_SHIFT) - 1

CMX_WORKSPACE_OFFSET = 0x18000
"""Start of a tile's data region; SHAVE stacks and descriptors are below it (C)."""

CMX_METADATA_OFFSET = 0x3C00
"""Start of a tile's task descriptors (C)."""


Number = TypeVar("Number", int, npt.NDArray[np.int64])
"""A number, or an array of numbers."""


def tile_base(tile: Number) -> Number:
    """Return the address of a tile's CMX."""
    return CMX_BASE | 1 << (TILE_SELECT_SHIFT + tile)


def tile_of(address: Number) -> Number:
    """Return an address without its offset; equal to ``tile_base`` of the only tile it selects."""
    return address & ~TILE_OFFSET_MASK


CMX_WORKSPACE_ADDRESS = tile_base(0) + CMX_WORKSPACE_OFFSET
CMX_METADATA_ADDRESS = tile_base(0) + CMX_METADATA_OFFSET
