"""The engines' access to memory: one address decoder over CMX and a context's address space."""

from __future__ import annotations

from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace, Allocation, Bytes


class Bus:
    """Memory that the programs of one context can access.

    Args:
        cmx: the device's CMX.
        space: the context's memory.
    """

    def __init__(self, cmx: Cmx, space: AddressSpace) -> None:
        self.cmx = cmx
        self.space = space
        self._used: dict[int, Allocation] = {}

    @property
    def used(self) -> tuple[Allocation, ...]:
        """The allocations that were accessed through this bus."""
        return tuple(self._used.values())

    def allocation(self, address: int) -> Allocation | None:
        """Return the allocation that contains an address outside CMX, and record its use."""
        found = self.space.find(address)
        if found is not None:
            self._used[found.address] = found
        return found

    def read(self, address: int, size: int) -> Bytes:
        """Return ``size`` bytes to read.

        Raises:
            DeviceFault: the bytes are not mapped, or the address selects several tiles.
        """
        if Cmx.contains(address):
            return self.cmx.view(address, size)
        self.allocation(address)
        return self.space.view(address, size)

    def write(self, address: int, size: int) -> list[Bytes]:
        """Return ``size`` bytes to write, once for each tile that the address selects.

        Raises:
            DeviceFault: the bytes are not mapped, or read-only.
        """
        if Cmx.contains(address):
            return self.cmx.views(address, size)
        self.allocation(address)
        return [self.space.view(address, size, write=True)]
