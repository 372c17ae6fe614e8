"""Memory: allocation, release and properties.

Source: Level Zero core specification 1.17; limits of the NPU driver,
docs/reference/level_zero.md#memory.
"""

from __future__ import annotations

from driver_layer.npu.memory import PAGE_BYTES
from driver_layer.ze import errors
from driver_layer.ze import types as t
from driver_layer.ze.calls import checked
from driver_layer.ze.context import (
    Memory,
    Pointer,
    check_device,
    own_memory,
    ze_context_handle_t,
)
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.external_memory import SHARING_CODES, check_flags
from driver_layer.ze.host_process import HostProcess

_READ_ONLY = t.ze_host_mem_alloc_flags_t.ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY
_WRITE_COMBINED = t.ze_host_mem_alloc_flags_t.ZE_HOST_MEM_ALLOC_FLAG_BIAS_WRITE_COMBINED


@checked
def zeMemAllocHost(
    hContext: ze_context_handle_t,
    size: int,
    alignment: int = 0,
    host_desc: t.ze_host_mem_alloc_desc_t | None = None,
) -> Memory:
    """Allocate zeroed host memory that the device can access, or map existing memory.

    Unlike in the specification, mapped memory has different addresses on device and host for
    callers in Python.

    Args:
        hContext: the context.
        size: size in bytes; for mapped memory, its actual size.
        alignment: a power of two, or 0; every allocation begins at a page.
        host_desc: with ``pNext``, memory to map in place, to export or to import. Without the flag
            MEM_READ_ONLY, imported memory is mapped writable.

    Raises:
        ZeError: UNSUPPORTED_SIZE, UNSUPPORTED_ALIGNMENT, OUT_OF_DEVICE_MEMORY; INVALID_ARGUMENT:
            read-only memory is to be mapped writable, or the imported memory was not exported;
            INVALID_ENUMERATION: unknown flags; UNSUPPORTED_ENUMERATION: this form of export is not
            supported.
    """
    if host_desc is not None:
        errors.check_known(host_desc.flags, t.ze_host_mem_alloc_flags_t)
    kind = t.ze_memory_type_t.ZE_MEMORY_TYPE_HOST
    chained = None if host_desc is None else host_desc.pNext
    if host_desc is None or chained is None:
        return hContext.allocate(size, alignment, kind)
    read_only = bool(host_desc.flags & _READ_ONLY)
    if isinstance(chained, t.ze_external_memmap_sysmem_ext_desc_t):
        data = chained.pSystemMemory
        if data.nbytes != size:
            message = f"size {size} differs from the {data.nbytes} bytes of the mapped memory"
            raise errors.unsupported_size(message)
        return hContext.map_host(data, read_only or bool(host_desc.flags & _WRITE_COMBINED))
    return hContext.allocate_external(size, alignment, kind, chained, read_only)


@checked
def zeMemAllocDevice(
    hContext: ze_context_handle_t,
    size: int,
    alignment: int,
    hDevice: ze_device_handle_t,
    device_desc: t.ze_device_mem_alloc_desc_t | None = None,
) -> Memory:
    """Allocate device memory, without a host view; otherwise as zeMemAllocHost."""
    check_device(hContext, hDevice)
    if device_desc is not None:
        errors.check_known(device_desc.flags, t.ze_device_mem_alloc_flags_t)
    kind = t.ze_memory_type_t.ZE_MEMORY_TYPE_DEVICE
    if device_desc is None or device_desc.pNext is None:
        return hContext.allocate(size, alignment, kind)
    return hContext.allocate_external(size, alignment, kind, device_desc.pNext)


@checked
def zeMemAllocShared(
    hContext: ze_context_handle_t, size: int, alignment: int, hDevice: ze_device_handle_t
) -> Memory:
    """Allocate memory for host and device that cannot be exported; otherwise as zeMemAllocHost."""
    check_device(hContext, hDevice)
    return hContext.allocate(size, alignment, t.ze_memory_type_t.ZE_MEMORY_TYPE_SHARED)


@checked
def zeMemFree(hContext: ze_context_handle_t, ptr: Memory) -> None:
    """Free memory; other processes that have opened or imported the memory keep it.

    Raises:
        ZeError: INVALID_ARGUMENT: the memory is not of this context, was freed before, or must be
            closed with zeMemCloseIpcHandle.
    """
    memory = own_memory(hContext, ptr)
    if memory.opened:
        message = "the memory is another process's; close it with zeMemCloseIpcHandle"
        raise errors.invalid_argument(message)
    hContext.release(memory)


@checked
def zeMemGetAllocProperties(
    hContext: ze_context_handle_t,
    ptr: Pointer,
    pNext: t.ze_external_memory_export_fd_t | None = None,
) -> t.ze_memory_allocation_properties_t:
    """Describe the memory that a pointer points into; unknown memory has type UNKNOWN.

    Args:
        hContext: the context.
        ptr: an address in the memory.
        pNext: request for a descriptor by which other processes can import the memory. The result
            has it in ``pNext``; the caller must close it.

    Raises:
        ZeError: UNSUPPORTED_ENUMERATION: this form of export is not supported; INVALID_ARGUMENT:
            the memory was not allocated with ze_external_memory_export_desc_t and these flags;
            OUT_OF_HOST_MEMORY: the process has no descriptors left.
    """
    memory = hContext.find(ptr)
    if memory is None:
        unknown = t.ze_memory_type_t.ZE_MEMORY_TYPE_UNKNOWN
        return t.ze_memory_allocation_properties_t(unknown, 0, 0)
    exported = None if pNext is None else _export(hContext.host, memory, pNext.flags)
    return t.ze_memory_allocation_properties_t(memory.kind, memory.number, PAGE_BYTES, exported)


def _export(
    host: HostProcess, memory: Memory, flags: t.ze_external_memory_type_flags_t
) -> t.ze_external_memory_export_fd_t:
    check_flags(flags)
    if memory.shareable is None or int(flags) & ~int(memory.exportable):
        raise errors.invalid_argument(f"the memory was not allocated for export as {flags!r}")
    with errors.failing_as(SHARING_CODES):
        descriptor = host.give_descriptor(memory.shareable.descriptor)
    return t.ze_external_memory_export_fd_t(flags, descriptor)


@checked
def zeMemGetAddressRange(hContext: ze_context_handle_t, ptr: Pointer) -> tuple[int, int]:
    """Return base address and size of the memory that a pointer points into.

    Raises:
        ZeError: INVALID_ARGUMENT: the pointer is not in memory of this context.
    """
    memory = hContext.find(ptr)
    if memory is None:
        raise errors.invalid_argument("ptr is not in memory of this context")
    return memory.address, memory.size
