"""Contexts and their memory.

Each context has an address space of its own. Host and shared memory have a host view, ``data``;
device memory is reached by copies only.

Source: Level Zero core specification 1.17; limits of the NPU driver, fact sheet elf_driver §5.3.
"""

from __future__ import annotations

from collections.abc import Callable

from driver_layer.errors import OutOfMemory
from driver_layer.npu.memory import PAGE_BYTES, AddressSpace, Allocation, Bytes, MemoryKind
from driver_layer.ze import types as t
from driver_layer.ze.driver import ze_device_handle_t, ze_driver_handle_t
from driver_layer.ze.handles import Handle, check
from driver_layer.ze.result import failed, ze_result_t


class Memory(Handle):
    """Memory that a caller allocated: a pointer with its size."""

    def __init__(self, allocation: Allocation, kind: t.ze_memory_type_t, number: int) -> None:
        super().__init__()
        self.allocation = allocation
        self.kind = kind
        self.number = number

    @property
    def address(self) -> int:
        """Where the device sees it; valid for the host as a pointer to pass on."""
        return self.allocation.address

    @property
    def size(self) -> int:
        """Bytes."""
        return self.allocation.size

    @property
    def data(self) -> Bytes:
        """The host's view, u8.

        Raises:
            ZeError: UNSUPPORTED_FEATURE: device memory has none.
        """
        if self.kind is t.ze_memory_type_t.ZE_MEMORY_TYPE_DEVICE:
            message = "device memory has no host view; copy it, or allocate shared memory"
            raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, message)
        return self.allocation.data


Pointer = Memory | int
"""Where a call reads or writes: memory from its start, or an address inside of it."""


class ze_context_handle_t(Handle):
    """A context: an address space on one device."""

    def __init__(self, device: ze_device_handle_t) -> None:
        super().__init__()
        self.device = device
        self.space = AddressSpace()
        device.spaces.add(self.space)
        self.memory: dict[int, Memory] = {}
        self._count = 0

    def allocate(self, size: int, alignment: int, kind: t.ze_memory_type_t) -> Memory:
        """Take memory, zeroed; see zeMemAllocHost."""
        if size <= 0:
            message = f"cannot allocate {size} bytes"
            raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_SIZE, message)
        if alignment < 0 or alignment & (alignment - 1):
            message = f"alignment {alignment} is no power of two"
            raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, message)
        return self._keep(lambda: self.space.allocate(size, MemoryKind.DMA), kind)

    def map_host(self, data: Bytes, read_only: bool) -> Memory:
        """Let the device reach the host's memory in place; see zeMemAllocHost."""
        if not data.size:
            raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_SIZE, "no memory to map")
        if data.ctypes.data % PAGE_BYTES or not data.flags.c_contiguous:
            message = "what is mapped begins at a page, and is in one piece"
            raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, message)
        if not data.flags.writeable and not read_only:
            message = "read-only memory is mapped with ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY alone"
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
        return self._keep(
            lambda: self.space.map(data, MemoryKind.DMA, not read_only),
            t.ze_memory_type_t.ZE_MEMORY_TYPE_HOST,
        )

    def _keep(self, make: Callable[[], Allocation], kind: t.ze_memory_type_t) -> Memory:
        try:
            allocation = make()
        except OutOfMemory as error:
            code = ze_result_t.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
            raise failed(code, str(error)) from error
        self._count += 1
        memory = Memory(allocation, kind, self._count)
        self.memory[allocation.address] = memory
        return memory

    def bytes_at(self, pointer: Pointer | None, size: int) -> Bytes:
        """Give bytes of this context's memory.

        Raises:
            ZeError: INVALID_NULL_POINTER, or INVALID_ARGUMENT if they are not all in one
                allocation of a caller of this context.
        """
        allocation, offset = self._resolve(pointer, size)
        return allocation.data[offset : offset + size]

    def address_of(self, pointer: Pointer | None, size: int) -> int:
        """Give the device address of bytes of this context's memory; as ``bytes_at``."""
        allocation, offset = self._resolve(pointer, size)
        return allocation.address + offset

    def find(self, pointer: Pointer) -> Memory | None:
        """Give the memory that a pointer points into."""
        address = pointer if isinstance(pointer, int) else pointer.address
        allocation = self.space.find(address)
        memory = None if allocation is None else self.memory.get(allocation.address)
        return memory if isinstance(pointer, int) or memory is pointer else None

    def _resolve(self, pointer: Pointer | None, size: int) -> tuple[Allocation, int]:
        if pointer is None or pointer == 0:
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_NULL_POINTER, "no pointer given")
        memory = self.find(pointer)
        address = pointer if isinstance(pointer, int) else pointer.address
        if memory is None or size < 0 or address + size > memory.allocation.end:
            message = f"{size} bytes at {address:#x} are not memory of this context"
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
        return memory.allocation, address - memory.address


def zeContextCreate(hDriver: ze_driver_handle_t) -> ze_context_handle_t:
    """Make a context."""
    return ze_context_handle_t(check(hDriver, ze_driver_handle_t).device)


def zeContextDestroy(hContext: ze_context_handle_t) -> None:
    """End a context; its memory goes with it."""
    context = check(hContext, ze_context_handle_t)
    for memory in list(context.memory.values()):
        zeMemFree(context, memory)
    context.alive = False


def zeMemAllocHost(
    hContext: ze_context_handle_t,
    size: int,
    alignment: int = 0,
    host_desc: t.ze_host_mem_alloc_desc_t | None = None,
) -> Memory:
    """Take zeroed host memory that the device reaches, or let it reach what the host has.

    Unlike the specification's, mapped memory has another address on the device than on the host:
    addresses are the simulated device's own.

    Args:
        hContext: whose.
        size: bytes; of mapped memory, those that it has.
        alignment: a power of two, or 0; every allocation begins at a page.
        host_desc: with ``pNext``, memory to map in place.

    Raises:
        ZeError: UNSUPPORTED_SIZE, UNSUPPORTED_ALIGNMENT, OUT_OF_DEVICE_MEMORY; INVALID_ARGUMENT:
            memory that the host may only read is to be written.
    """
    context = check(hContext, ze_context_handle_t)
    if host_desc is not None and host_desc.pNext is not None:
        data = host_desc.pNext.pSystemMemory
        if data.nbytes != size:
            message = f"{size} bytes of {data.nbytes} are to be mapped"
            raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_SIZE, message)
        flag = t.ze_host_mem_alloc_flags_t.ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY
        return context.map_host(data, bool(host_desc.flags & flag))
    return context.allocate(size, alignment, t.ze_memory_type_t.ZE_MEMORY_TYPE_HOST)


def zeMemAllocDevice(
    hContext: ze_context_handle_t, size: int, alignment: int, hDevice: ze_device_handle_t
) -> Memory:
    """Take device memory, without a host view; otherwise as zeMemAllocHost."""
    context = check(hContext, ze_context_handle_t)
    _check_device(context, hDevice)
    return context.allocate(size, alignment, t.ze_memory_type_t.ZE_MEMORY_TYPE_DEVICE)


def zeMemAllocShared(
    hContext: ze_context_handle_t, size: int, alignment: int, hDevice: ze_device_handle_t
) -> Memory:
    """Take memory that host and device both work on; otherwise as zeMemAllocHost."""
    context = check(hContext, ze_context_handle_t)
    _check_device(context, hDevice)
    return context.allocate(size, alignment, t.ze_memory_type_t.ZE_MEMORY_TYPE_SHARED)


def _check_device(context: ze_context_handle_t, device: ze_device_handle_t) -> None:
    if check(device, ze_device_handle_t) is not context.device:
        message = "the device is not of this context"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)


def zeMemFree(hContext: ze_context_handle_t, ptr: Memory) -> None:
    """Give memory back.

    Raises:
        ZeError: INVALID_ARGUMENT: it is not memory of this context, or was freed before.
    """
    context = check(hContext, ze_context_handle_t)
    memory = check(ptr, Memory)
    if context.memory.get(memory.address) is not memory:
        message = f"no memory of this context at {memory.address:#x}"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
    del context.memory[memory.address]
    context.space.free(memory.allocation)
    memory.alive = False


def zeMemGetAllocProperties(
    hContext: ze_context_handle_t, ptr: Pointer
) -> t.ze_memory_allocation_properties_t:
    """Describe the memory that a pointer points into; unknown memory has type UNKNOWN."""
    memory = check(hContext, ze_context_handle_t).find(ptr)
    if memory is None:
        unknown = t.ze_memory_type_t.ZE_MEMORY_TYPE_UNKNOWN
        return t.ze_memory_allocation_properties_t(unknown, 0, 0)
    return t.ze_memory_allocation_properties_t(memory.kind, memory.number, PAGE_BYTES)


def zeMemGetAddressRange(hContext: ze_context_handle_t, ptr: Pointer) -> tuple[int, int]:
    """Give base address and size of the memory that a pointer points into.

    Raises:
        ZeError: INVALID_ARGUMENT: it points into none.
    """
    memory = check(hContext, ze_context_handle_t).find(ptr)
    if memory is None:
        message = "not memory of this context"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
    return memory.address, memory.size
