"""CMX: each tile's own memory, where all operands of DPU and SHAVE live.

An address selects tiles by one bit each (``abi.platforms``); reads come from one tile, writes go to
every selected one.
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
        self._bytes = platform.cmx_bytes
        self.tiles = tuple(zeroed(platform.cmx_bytes) for _ in range(platform.tiles))
        """The bytes of each tile."""

    @staticmethod
    def contains(address: int) -> bool:
        """Tell whether an address is in CMX."""
        return address & ~(TILE_SELECT_MASK | TILE_OFFSET_MASK) == CMX_BASE

    def views(self, address: int, size: int) -> list[Bytes]:
        """Give ``size`` bytes at an address, once for each tile that it selects.

        Raises:
            DeviceFault: it selects no tile or one that does not exist, or leaves the tile.
        """
        offset = address & TILE_OFFSET_MASK
        mask = (address & TILE_SELECT_MASK) >> TILE_SELECT_SHIFT
        if not mask or mask >> len(self.tiles):
            raise DeviceFault(f"no such tiles: mask {mask:#b}", address=address)
        if offset + size > self._bytes:
            raise DeviceFault(f"access to {size} bytes leaves the tile's CMX", address=address)
        return [
            tile[offset : offset + size]
            for index, tile in enumerate(self.tiles)
            if mask >> index & 1
        ]

    def view(self, address: int, size: int) -> Bytes:
        """Give ``size`` bytes of the one tile that an address selects.

        Raises:
            DeviceFault: as ``views``, or several tiles are selected.
        """
        views = self.views(address, size)
        if len(views) != 1:
            raise DeviceFault("an access that needs one tile selects several", address=address)
        return views[0]
