"""The host as the process that calls: its memory lies at its own pointers."""

from __future__ import annotations

from contextlib import suppress

from driver_layer.c_abi.host import Host
from driver_layer.errors import OutOfMemory
from driver_layer.npu.memory import AddressSpace, Allocation, MemoryKind
from driver_layer.npu.shareable import Shareable

_DEVICE = MemoryKind.DMA.value


class CallingProcess:
    """Process that calls in C; see ``driver_layer.ze.host_process.HostProcess``.

    Args:
        host: the process.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    @property
    def number(self) -> int:
        """Number of the process."""
        return self._host.number

    def allocate(self, space: AddressSpace, size: int) -> Allocation:
        """Allocate bytes that both processes map; raises OutOfMemory."""
        if size > _DEVICE.end - _DEVICE.begin:
            raise OutOfMemory(f"{size} bytes are more than the device can address")
        shared = Shareable.allocate(size)
        try:
            return self.map(space, shared, writable=True)
        finally:
            shared.close()

    def map(self, space: AddressSpace, shared: Shareable, writable: bool) -> Allocation:
        """Map memory that processes share into the host, and at its address into the device's."""
        data = shared.data
        return space.map_at(self._host.map(shared.descriptor, data.size, writable), data, writable)

    def release(self, allocation: Allocation) -> None:
        """Remove memory from the host."""
        with suppress(OSError):  # the host may have removed it itself
            self._host.unmap(allocation.address, allocation.size)

    def path_of(self, descriptor: int) -> str:
        """Return the path of an open file of the host."""
        return f"/proc/{self.number}/fd/{descriptor}"

    def give_descriptor(self, descriptor: int) -> int:
        """Return the host's own descriptor of a file of this process."""
        return self._host.give_descriptor(descriptor)

    def close_descriptor(self, descriptor: int) -> None:
        """Close a descriptor of the host."""
        self._host.close_descriptor(descriptor)
