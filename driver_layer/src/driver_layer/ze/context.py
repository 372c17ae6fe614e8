"""Contexts, and what is memory of theirs.

Each context has an address space of its own. Host and shared memory have a host view, ``data``;
device memory is reached by copies only.

Source: Level Zero core specification 1.17; limits of the NPU driver, fact sheet elf_driver §5.3.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from contextlib import suppress

from driver_layer.errors import DriverUsageError, OutOfMemory
from driver_layer.npu.memory import PAGE_BYTES, AddressSpace, Allocation, Bytes, MemoryKind
from driver_layer.npu.shareable import Shareable
from driver_layer.ze import external_types as x
from driver_layer.ze import types as t
from driver_layer.ze.driver import ze_device_handle_t, ze_driver_handle_t
from driver_layer.ze.external_memory import make_shareable
from driver_layer.ze.handles import Handle, check, given
from driver_layer.ze.result import failed, ze_result_t


class Memory(Handle):
    """Memory that a caller allocated: a pointer with its size."""

    def __init__(self, allocation: Allocation, kind: t.ze_memory_type_t, number: int) -> None:
        super().__init__()
        self.allocation = allocation
        self.kind = kind
        self.number = number
        self.shareable: Shareable | None = None
        """What other processes can reach it by."""
        self.exportable = x.ze_external_memory_type_flags_t.NONE
        """How it was said to be exported when it was allocated."""
        self.given_out: tuple[x.ze_ipc_mem_handle_t, int] | None = None
        """Its IPC handle and the descriptor behind it, until the handle is put back."""
        self.opened = False
        """Whether it came by an IPC handle, and is to be closed and not freed."""

    def put_back(self) -> None:
        """Let its IPC handle be of no use any more."""
        given, self.given_out = self.given_out, None
        if given is not None:
            os.close(given[1])

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
        self.memory: dict[Allocation, Memory] = {}
        """Memory that callers allocated and have not freed."""
        self._numbers = itertools.count(1)

    def allocate(self, size: int, alignment: int, kind: t.ze_memory_type_t) -> Memory:
        """Take memory, zeroed; see zeMemAllocHost."""
        _check_size(size, alignment)
        return self._keep(lambda: self.space.allocate(size, MemoryKind.DMA), kind)

    def allocate_external(
        self,
        size: int,
        alignment: int,
        kind: t.ze_memory_type_t,
        desc: x.ze_external_desc_t,
        read_only: bool = False,
    ) -> Memory:
        """Take memory that can be exported, or map what was; see ``make_shareable``."""
        _check_size(size, alignment)
        shareable = make_shareable(desc, size, writable=not read_only)
        memory = self.map_shareable(shareable, kind)
        if isinstance(desc, x.ze_external_memory_export_desc_t):
            memory.exportable = desc.flags
        return memory

    def map_shareable(self, shareable: Shareable, kind: t.ze_memory_type_t) -> Memory:
        """Let the device reach memory that is shared with other processes."""
        data = shareable.data
        memory = self._keep(
            lambda: self.space.map(data, MemoryKind.DMA, data.flags.writeable), kind
        )
        memory.shareable = shareable
        return memory

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
        memory = Memory(allocation, kind, next(self._numbers))
        self.memory[allocation] = memory
        return memory

    def release(self, memory: Memory) -> None:
        """Take memory out of the context; what was done already is left out.

        Memory is the context's until all is done: if that is interrupted, it can be freed again.
        """
        with suppress(DriverUsageError):
            self.space.free(memory.allocation)
        memory.put_back()
        if memory.shareable is not None:
            memory.shareable.close()
        self.memory.pop(memory.allocation, None)
        memory.alive = False

    def bytes_at(self, pointer: Pointer | None, size: int, write: bool = False) -> Bytes:
        """Give bytes of this context's memory.

        Raises:
            ZeError: INVALID_NULL_POINTER, or INVALID_ARGUMENT if they are not all in one
                allocation of a caller of this context, or are to be written and may not be.
        """
        allocation, offset = self._resolve(pointer, size)
        if write and not allocation.writable:
            message = f"the device may only read the memory at {allocation.address:#x}"
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
        return allocation.data[offset : offset + size]

    def address_of(self, pointer: Pointer | None, size: int) -> int:
        """Give the device address of bytes of this context's memory; as ``bytes_at``."""
        allocation, offset = self._resolve(pointer, size)
        return allocation.address + offset

    def find(self, pointer: Pointer) -> Memory | None:
        """Give the memory that a pointer points into."""
        address = pointer if isinstance(pointer, int) else pointer.address
        allocation = self.space.find(address)
        memory = None if allocation is None else self.memory.get(allocation)
        return memory if isinstance(pointer, int) or memory is pointer else None

    def _resolve(self, pointer: Pointer | None, size: int) -> tuple[Allocation, int]:
        pointer = given(pointer or None, "pointer")
        memory = self.find(pointer)
        address = pointer if isinstance(pointer, int) else pointer.address
        if memory is None or size < 0 or address + size > memory.allocation.end:
            message = f"{size} bytes at {address:#x} are not memory of this context"
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
        return memory.allocation, address - memory.address


def own_memory(context: ze_context_handle_t, ptr: Memory) -> Memory:
    """Give memory if it is a context's.

    Raises:
        ZeError: INVALID_ARGUMENT.
    """
    memory = check(given(ptr, "ptr"), Memory)
    if context.memory.get(memory.allocation) is not memory:
        message = f"no memory of this context at {memory.address:#x}"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
    return memory


def check_device(context: ze_context_handle_t, device: ze_device_handle_t) -> None:
    """See that a device is the context's.

    Raises:
        ZeError: INVALID_ARGUMENT.
    """
    if check(device, ze_device_handle_t) is not context.device:
        message = "the device is not of this context"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)


def _check_size(size: int, alignment: int) -> None:
    if size <= 0:
        message = f"cannot allocate {size} bytes"
        raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_SIZE, message)
    if alignment < 0 or alignment & (alignment - 1):
        message = f"alignment {alignment} is no power of two"
        raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, message)


def zeContextCreate(hDriver: ze_driver_handle_t) -> ze_context_handle_t:
    """Make a context."""
    return ze_context_handle_t(check(hDriver, ze_driver_handle_t).device)


def zeContextDestroy(hContext: ze_context_handle_t) -> None:
    """End a context; its memory goes with it."""
    context = check(hContext, ze_context_handle_t)
    for memory in list(context.memory.values()):
        context.release(memory)
    context.alive = False
