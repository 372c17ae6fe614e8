"""Contexts and their memory.

Each context has its own address space. Host and shared memory have a host view, ``data``; the host
accesses device memory only by copies.

Source: Level Zero core specification 1.17; limits of the NPU driver,
docs/reference/level_zero.md#memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from driver_layer.errors import DriverUsageError, OutOfMemory
from driver_layer.npu.memory import (
    PAGE_BYTES,
    AddressSpace,
    Allocation,
    Bytes,
    MemoryKind,
)
from driver_layer.npu.shareable import Shareable
from driver_layer.ze import errors
from driver_layer.ze import types as t
from driver_layer.ze.calls import Handle, checked
from driver_layer.ze.driver import ze_device_handle_t, ze_driver_handle_t
from driver_layer.ze.external_memory import make_shareable
from driver_layer.ze.host_process import BounceBuffer, HostProcess
from driver_layer.ze.idle_timer import scratch_timer
from driver_layer.ze.result import ze_result_t

_MAPPING_CODES: errors.Codes = {
    OutOfMemory: ze_result_t.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
    DriverUsageError: ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT,
}
"""Result codes of the errors of allocations."""


class Memory(Handle):
    """Memory that a caller allocated: a pointer with a size."""

    null = ze_result_t.ZE_RESULT_ERROR_INVALID_NULL_POINTER

    def __init__(self, allocation: Allocation, kind: t.ze_memory_type_t, number: int) -> None:
        super().__init__()
        self.allocation = allocation
        self.kind = kind
        self.number = number
        self.shareable: Shareable | None = None
        """Memory shared with other processes; None if the memory is not shareable."""
        self.exportable = t.ze_external_memory_type_flags_t.NONE
        """Forms of export that the allocation requested."""
        self.given_out: tuple[t.ze_ipc_mem_handle_t, int] | None = None
        """The IPC handle and its descriptor, until the handle is put back."""
        self.opened = False
        """True if the memory was opened by an IPC handle, and must be closed, not freed."""
        self.bounce_buffer: BounceBuffer | None = None
        """Copies between the bytes and those of the host that they stand for; None if they are the
        same bytes."""

    def put_back(self, host: HostProcess) -> None:
        """Invalidate the memory's IPC handle."""
        given, self.given_out = self.given_out, None
        if given is not None:
            host.close_descriptor(given[1])

    @property
    def address(self) -> int:
        """Device address; the host may pass it as a pointer."""
        return self.allocation.address

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.allocation.size

    @property
    def data(self) -> Bytes:
        """The host's view, u8.

        Raises:
            ZeError: UNSUPPORTED_FEATURE: device memory has no host view.
        """
        if self.kind is t.ze_memory_type_t.ZE_MEMORY_TYPE_DEVICE:
            message = "device memory has no host view; copy it, or allocate shared memory"
            raise errors.unsupported_feature(message)
        return self.allocation.data


Pointer = Memory | int
"""Location that a call reads or writes: the start of memory, or an address in it."""


class ze_context_handle_t(Handle):
    """A context: an address space on one device."""

    def __init__(self, device: ze_device_handle_t) -> None:
        super().__init__()
        self.device = device
        self.host = device.host
        self.space = AddressSpace()
        device.spaces.add(self.space)
        self.memory: dict[Allocation, Memory] = {}
        """Memory that callers have allocated and not freed."""
        self._numbers = itertools.count(1)
        self.idle = scratch_timer(device, self.space)
        """Releases scratch memory when no work was waited for in a while."""

    def allocate(self, size: int, alignment: int, kind: t.ze_memory_type_t) -> Memory:
        """Allocate zeroed memory; see zeMemAllocHost."""
        _check_size(size, alignment)
        return self._keep(lambda: self.host.allocate(self.space, size), kind)

    def allocate_external(
        self,
        size: int,
        alignment: int,
        kind: t.ze_memory_type_t,
        desc: t.ze_external_desc_t,
        read_only: bool = False,
    ) -> Memory:
        """Allocate exportable memory, or map exported memory; see ``make_shareable``."""
        _check_size(size, alignment)
        shareable = make_shareable(desc, size, not read_only, self.host)
        memory = self.map_shareable(shareable, kind)
        if isinstance(desc, t.ze_external_memory_export_desc_t):
            memory.exportable = desc.flags
        return memory

    def map_shareable(self, shareable: Shareable, kind: t.ze_memory_type_t) -> Memory:
        """Map memory that is shared with other processes into the device's address space."""
        writable = shareable.data.flags.writeable
        memory = self._keep(lambda: self.host.map(self.space, shareable, writable), kind)
        memory.shareable = shareable
        return memory

    def map_host(self, data: Bytes, read_only: bool) -> Memory:
        """Map host memory into the device's address space; see zeMemAllocHost."""
        if not data.size:
            raise errors.unsupported_size("the memory to map is empty")
        if data.dtype != np.uint8 or data.ndim != 1:
            message = f"mapped memory must be a vector of u8, not {data.dtype} {data.shape}"
            raise errors.invalid_argument(message)
        if data.ctypes.data % PAGE_BYTES or not data.flags.c_contiguous:
            message = "mapped memory must begin at a page and be contiguous"
            raise errors.unsupported_alignment(message)
        if not data.flags.writeable and not read_only:
            message = (
                "read-only memory can be mapped only with ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY"
            )
            raise errors.invalid_argument(message)
        host = t.ze_memory_type_t.ZE_MEMORY_TYPE_HOST
        return self._keep(lambda: self.space.map(data, MemoryKind.DMA, not read_only), host)

    def map_bounced(
        self, address: int, data: Bytes, writable: bool, buffer: BounceBuffer
    ) -> Memory:
        """Map a copy of host memory into the device's address space, at the host's address."""
        host = t.ze_memory_type_t.ZE_MEMORY_TYPE_HOST
        memory = self._keep(lambda: self.space.map_at(address, data, writable), host)
        memory.bounce_buffer = buffer
        return memory

    def bounced(self, run: Callable[[], object], *pointers: Pointer) -> Callable[[], object]:
        """Return a command that also copies memory with bounce buffers, to the device and back.

        Args:
            run: the command.
            pointers: the memory that it reads or writes.
        """
        found = [memory.bounce_buffer for memory in map(self.find, pointers) if memory is not None]
        buffers = [buffer for buffer in dict.fromkeys(found) if buffer is not None]
        if not buffers:
            return run

        def between_copies() -> None:
            stores = [buffer.load() for buffer in buffers]
            run()
            for store in stores:
                store()

        return between_copies

    def _keep(self, make: Callable[[], Allocation], kind: t.ze_memory_type_t) -> Memory:
        with errors.failing_as(_MAPPING_CODES):
            allocation = make()
        memory = Memory(allocation, kind, next(self._numbers))
        self.memory[allocation] = memory
        return memory

    def release(self, memory: Memory) -> None:
        """Remove memory from the context; an interrupted call may be repeated."""
        with suppress(DriverUsageError):
            self.space.free(memory.allocation)
            if memory.bounce_buffer is None:
                self.host.release(memory.allocation)
        memory.put_back(self.host)
        if memory.shareable is not None:
            memory.shareable.close()
        self.memory.pop(memory.allocation, None)
        memory.alive = False

    def bytes_at(self, pointer: Pointer | None, size: int, write: bool = False) -> Bytes:
        """Return bytes of this context's memory.

        Raises:
            ZeError: INVALID_NULL_POINTER, or INVALID_ARGUMENT if the bytes are not all in one
                allocation of this context, or ``write`` is set and they are read-only.
        """
        allocation, offset = self._resolve(pointer, size)
        if write and not allocation.writable:
            message = f"the memory at {allocation.address:#x} is read-only for the device"
            raise errors.invalid_argument(message)
        return allocation.data[offset : offset + size]

    def address_of(self, pointer: Pointer | None, size: int) -> int:
        """Return the device address of bytes of this context's memory; raises as ``bytes_at``."""
        allocation, offset = self._resolve(pointer, size)
        return allocation.address + offset

    def find(self, pointer: Pointer) -> Memory | None:
        """Return the memory that a pointer points into."""
        address = pointer if isinstance(pointer, int) else pointer.address
        allocation = self.space.find(address)
        memory = None if allocation is None else self.memory.get(allocation)
        return memory if isinstance(pointer, int) or memory is pointer else None

    def _resolve(self, pointer: Pointer | None, size: int) -> tuple[Allocation, int]:
        pointer = errors.not_null(pointer, "pointer")
        memory = self.find(pointer)
        address = pointer if isinstance(pointer, int) else pointer.address
        if memory is None or size < 0 or address + size > memory.allocation.end:
            message = f"{size} bytes at {address:#x} are not in memory of this context"
            raise errors.invalid_argument(message)
        return memory.allocation, address - memory.address


def own_memory(context: ze_context_handle_t, ptr: Memory) -> Memory:
    """Return ``ptr`` if it is memory of the context.

    Raises:
        ZeError: INVALID_ARGUMENT: it is not.
    """
    if context.memory.get(ptr.allocation) is not ptr:
        raise errors.invalid_argument(f"no memory of this context at {ptr.address:#x}")
    return ptr


def check_device(context: ze_context_handle_t, device: ze_device_handle_t) -> None:
    """Check that a device is the context's.

    Raises:
        ZeError: INVALID_ARGUMENT: it is not.
    """
    if device is not context.device:
        raise errors.invalid_argument("the device does not belong to this context")


def _check_size(size: int, alignment: int) -> None:
    if size <= 0:
        raise errors.unsupported_size(f"cannot allocate {size} bytes")
    if alignment < 0 or alignment & (alignment - 1):
        raise errors.unsupported_alignment(f"alignment {alignment} is not a power of two")


@checked
def zeContextCreate(hDriver: ze_driver_handle_t) -> ze_context_handle_t:
    """Create a context."""
    return ze_context_handle_t(hDriver.device)


@checked
def zeContextDestroy(hContext: ze_context_handle_t) -> None:
    """Destroy a context and free its memory."""
    hContext.idle.disable()
    for memory in list(hContext.memory.values()):
        hContext.release(memory)
    hContext.alive = False


@checked
def zeContextGetStatus(hContext: ze_context_handle_t) -> ze_result_t:
    """Return whether a context's device works: always SUCCESS, see zeDeviceGetStatus."""
    return ze_result_t.ZE_RESULT_SUCCESS


@checked
def zeContextSystemBarrier(hContext: ze_context_handle_t, hDevice: ze_device_handle_t) -> None:
    """Make memory of host and device coherent, which it always is."""
    check_device(hContext, hDevice)


@checked
def zeContextMakeMemoryResident(
    hContext: ze_context_handle_t, hDevice: ze_device_handle_t, ptr: Pointer, size: int
) -> None:
    """Keep memory on the device, where it always is.

    Raises:
        ZeError: INVALID_NULL_POINTER, INVALID_ARGUMENT: the bytes are not memory of the context, or
            the device is not the context's.
    """
    check_device(hContext, hDevice)
    hContext.bytes_at(ptr, size)


@checked
def zeContextEvictMemory(
    hContext: ze_context_handle_t, hDevice: ze_device_handle_t, ptr: Pointer, size: int
) -> None:
    """Allow the driver to evict memory, which it never does; as zeContextMakeMemoryResident."""
    check_device(hContext, hDevice)
    hContext.bytes_at(ptr, size)
