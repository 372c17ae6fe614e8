"""Translation of device addresses to host addresses."""

from __future__ import annotations

import numpy as np

from driver_layer.abi.platforms import (
    CMX_BASE,
    TILE_OFFSET_MASK,
    TILE_SELECT_MASK,
    TILE_SELECT_SHIFT,
)
from driver_layer.engines.native.lower.arrays import Flags, Ints
from driver_layer.npu.bus import Bus
from driver_layer.npu.memory import Allocation


class AddressMap:
    """A snapshot of the mappings of a context's memory and of CMX.

    Args:
        bus: memory that the program can access; the bus records which allocations it uses.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._allocations: tuple[Allocation, ...] = bus.space.allocations()
        self._starts = np.array([one.address for one in self._allocations], np.int64)
        self._ends = np.array([one.end for one in self._allocations], np.int64)
        self._hosts = np.array([one.data.ctypes.data for one in self._allocations], np.int64)
        self._writable = np.array([one.writable for one in self._allocations], np.bool_)
        tiles = bus.cmx.tiles
        self._tile_bytes = bus.cmx.tile_bytes
        # By select mask; 0 if the mask selects no tile, several tiles, or a missing one.
        self._tile_hosts = np.zeros(1 << TILE_SELECT_MASK.bit_count(), np.int64)
        for number, tile in enumerate(tiles):
            self._tile_hosts[1 << number] = tile.ctypes.data

    def translate(self, addresses: Ints, extents: Ints, writes: Flags) -> tuple[Ints, Flags]:
        """Translate device addresses.

        Args:
            addresses: device addresses, [n].
            extents: bytes accessed from each address on.
            writes: True for each write.

        Returns:
            Host addresses, and True for each access to mapped bytes, writable ones for a write.
        """
        in_cmx = addresses & ~(TILE_SELECT_MASK | TILE_OFFSET_MASK) == CMX_BASE
        hosts, valid = self._translate_cmx(addresses, extents)
        outside = ~in_cmx
        if outside.any():
            found = self._translate_space(addresses[outside], extents[outside], writes[outside])
            hosts[outside], valid[outside] = found
        return hosts, valid

    def _translate_cmx(self, addresses: Ints, extents: Ints) -> tuple[Ints, Flags]:
        offsets = addresses & TILE_OFFSET_MASK
        bases = self._tile_hosts[(addresses & TILE_SELECT_MASK) >> TILE_SELECT_SHIFT]
        valid = (bases != 0) & (extents >= 0) & (offsets + extents <= self._tile_bytes)
        return bases + offsets, valid

    def _translate_space(self, addresses: Ints, extents: Ints, writes: Flags) -> tuple[Ints, Flags]:
        if not len(self._starts):
            return np.zeros_like(addresses), np.zeros(len(addresses), np.bool_)
        index = np.searchsorted(self._starts, addresses, side="right") - 1
        known = np.maximum(index, 0)
        # Comparing the bytes left after an address avoids overflow.
        room = self._ends[known] - addresses
        valid = (index >= 0) & (extents >= 0) & (extents <= room)
        valid &= ~writes | self._writable[known]
        reached: list[int] = np.unique(known[valid]).tolist()
        for number in reached:
            self._bus.allocation(self._allocations[number].address)
        return self._hosts[known] + (addresses - self._starts[known]), valid
