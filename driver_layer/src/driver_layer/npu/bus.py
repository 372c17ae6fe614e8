"""How the engines reach memory: one address decoder over CMX and a context's address space."""

from __future__ import annotations

from dataclasses import dataclass

from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace, Bytes


@dataclass(frozen=True, slots=True)
class Bus:
    """What the programs of one context can reach."""

    cmx: Cmx
    space: AddressSpace

    def read(self, address: int, size: int) -> Bytes:
        """Give ``size`` bytes to read.

        Raises:
            DeviceFault: they are not mapped, or the address selects several tiles.
        """
        if Cmx.contains(address):
            return self.cmx.view(address, size)
        return self.space.view(address, size)

    def write(self, address: int, size: int) -> list[Bytes]:
        """Give ``size`` bytes to write, once for each place that the address selects.

        Raises:
            DeviceFault: they are not mapped, or are read-only.
        """
        if Cmx.contains(address):
            return self.cmx.views(address, size)
        return [self.space.view(address, size, write=True)]
