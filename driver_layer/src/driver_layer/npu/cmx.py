"""CMX: each tile's on-chip memory, which holds all operands of DPU and SHAVE.

An address selects tiles by one bit each (``abi.platforms``); only a write may select several.
"""

from __future__ import annotations

from driver_layer.abi.platforms import (
    CMX_BASE,
    TILE_OFFSET_MASK,
    TILE_SELECT_MASK,
    TILE_SELECT_SHIFT,
    Platform,
)
from driver_layer.errors import DeviceFault
from driver_layer.npu.memory import Bytes, zeroed


class Cmx:
    """The CMX of all tiles of a device."""

    def __init__(self, platform: Platform) -> None:
        self.tile_bytes = platform.cmx_bytes
        """Size of each tile's CMX."""
        self.tiles = tuple(zeroed(platform.cmx_bytes) for _ in range(platform.tiles))
        """The bytes of each tile."""

    @staticmethod
    def contains(address: int) -> bool:
        """Return whether an address is in CMX."""
        return address & ~(TILE_SELECT_MASK | TILE_OFFSET_MASK) == CMX_BASE

    def views(self, address: int, size: int) -> list[Bytes]:
        """Return ``size`` bytes at an address, once for each tile that it selects.

        Raises:
            DeviceFault: the address is outside CMX, or selects no tile or a missing one, or the
                bytes leave the tile.
        """
        if not self.contains(address):
            raise DeviceFault(f"access to {size} bytes outside CMX", address=address)
        offset = address & TILE_OFFSET_MASK
        mask = (address & TILE_SELECT_MASK) >> TILE_SELECT_SHIFT
        if not mask or mask >> len(self.tiles):
            raise DeviceFault(f"no such tiles: mask {mask:#b}", address=address)
        if offset + size > self.tile_bytes:
            raise DeviceFault(f"access to {size} bytes leaves the tile's CMX", address=address)
        return [
            tile[offset : offset + size]
            for index, tile in enumerate(self.tiles)
            if mask >> index & 1
        ]

    def view(self, address: int, size: int) -> Bytes:
        """Return ``size`` bytes of the only tile that an address selects.

        Raises:
            DeviceFault: as for ``views``, or the address selects several tiles.
        """
        views = self.views(address, size)
        if len(views) != 1:
            raise DeviceFault("the address selects several tiles; only writes may", address=address)
        return views[0]
