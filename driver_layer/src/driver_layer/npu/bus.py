"""How the engines reach memory: one address decoder over CMX and a context's address space."""

from __future__ import annotations

from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace, Allocation, Bytes


class Bus:
    """What the programs of one context can reach.

    Args:
        cmx: the device's.
        space: the context's memory.
    """

    def __init__(self, cmx: Cmx, space: AddressSpace) -> None:
        self.cmx = cmx
        self.space = space
        self._used: dict[int, Allocation] = {}

    @property
    def used(self) -> tuple[Allocation, ...]:
        """The allocations that were reached through this bus."""
        return tuple(self._used.values())

    def allocation(self, address: int) -> Allocation | None:
        """Give the allocation that holds an address outside CMX."""
        found = self.space.find(address)
        if found is not None:
            self._used[found.address] = found
        return found

    def read(self, address: int, size: int) -> Bytes:
        """Give ``size`` bytes to read.

        Raises:
            DeviceFault: they are not mapped, or the address selects several tiles.
        """
        if Cmx.contains(address):
            return self.cmx.view(address, size)
        self.allocation(address)
        return self.space.view(address, size)

    def write(self, address: int, size: int) -> list[Bytes]:
        """Give ``size`` bytes to write, once for each place that the address selects.

        Raises:
            DeviceFault: they are not mapped, or are read-only.
        """
        if Cmx.contains(address):
            return self.cmx.views(address, size)
        self.allocation(address)
        return [self.space.view(address, size, write=True)]
