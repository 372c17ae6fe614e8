"""The process that calls the driver: where its memory lies, and its file descriptors.

A caller in Python is this process, whose memory lies in the device's own range of addresses. A
caller in C has a driver process (``driver_layer.c_abi``), and its memory lies at its own pointers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from driver_layer.npu.memory import AddressSpace, Allocation, MemoryKind
from driver_layer.npu.shareable import Shareable, duplicate


class HostProcess(Protocol):
    """Process that calls the driver."""

    @property
    def number(self) -> int:
        """Number of the process."""
        ...

    def allocate(self, space: AddressSpace, size: int) -> Allocation:
        """Allocate zeroed bytes for the device and the process.

        Raises:
            OutOfMemory: there is no such memory, or no address for it.
        """
        ...

    def map(self, space: AddressSpace, shared: Shareable, writable: bool) -> Allocation:
        """Map memory that processes share into the device's address space; raises as above."""
        ...

    def release(self, allocation: Allocation) -> None:
        """Remove memory that ``allocate`` or ``map`` returned from the process."""
        ...

    def path_of(self, descriptor: int) -> str:
        """Return a path of what a descriptor of the process refers to."""
        ...

    def give_descriptor(self, descriptor: int) -> int:
        """Return a new descriptor of the process for a descriptor of this one.

        Raises:
            NoDescriptor: the process has no descriptor left.
        """
        ...

    def close_descriptor(self, descriptor: int) -> None:
        """Close a descriptor of the process."""
        ...


class OwnProcess:
    """A caller that is this process itself."""

    @property
    def number(self) -> int:
        """Number of the process."""
        return os.getpid()

    def allocate(self, space: AddressSpace, size: int) -> Allocation:
        """Allocate bytes in the device's own range."""
        return space.allocate(size, MemoryKind.DMA)

    def map(self, space: AddressSpace, shared: Shareable, writable: bool) -> Allocation:
        """Map memory into the device's own range."""
        return space.map(shared.data, MemoryKind.DMA, writable)

    def release(self, allocation: Allocation) -> None:
        """Do nothing: the bytes live as long as a reference to them."""

    def path_of(self, descriptor: int) -> str:
        """Return the path of an open file."""
        return f"/proc/self/fd/{descriptor}"

    def give_descriptor(self, descriptor: int) -> int:
        """Return another descriptor of the same file."""
        return duplicate(descriptor)

    def close_descriptor(self, descriptor: int) -> None:
        """Close a descriptor."""
        os.close(descriptor)


class BounceBuffer(Protocol):
    """The device's copy of memory that it cannot share with the host."""

    def load(self) -> Callable[[], None]:
        """Copy the host's bytes to the device; return what copies the device's changes back."""
        ...


OWN_PROCESS = OwnProcess()
