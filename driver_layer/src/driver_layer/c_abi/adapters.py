"""Functions whose parameters in C differ from those of the Python function of the same name.

Parameters have the names of C; results are those of C, in order. ``calls`` uses these functions
instead of the ones in ``driver_layer.ze``.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from driver_layer import ze
from driver_layer.c_abi.bounce_buffer import PageBuffer
from driver_layer.c_abi.description.language import description
from driver_layer.c_abi.host import Span, host
from driver_layer.c_abi.parameters import TABLES
from driver_layer.c_abi.structures import chain, read, structure_bytes, write
from driver_layer.errors import OutOfMemory, ZeError
from driver_layer.npu.memory import PAGE_BYTES
from driver_layer.ze import errors
from driver_layer.ze.calls import checked
from driver_layer.ze.context import check_device
from driver_layer.ze.driver import extension_tables
from driver_layer.ze.graph_table.creation import GraphCreationError
from driver_layer.ze.result import ze_result_t

_NPU = 2
"""ZE_INIT_FLAG_VPU_ONLY, and ZE_INIT_DRIVER_TYPE_FLAG_NPU."""


class FailureWithResults(ZeError):
    """Failure of a call that has results all the same."""

    def __init__(self, error: ZeError, results: tuple[Any, ...]) -> None:
        super().__init__(error.code, error.message)
        self.results = results


def zeInit(flags: int) -> None:
    """Initialise the library, unless the caller asks for other devices alone.

    Raises:
        ZeError: UNINITIALIZED: it does.
            Source: docs/reference/level_zero.md#loaders-and-function-tables.
    """
    if flags and not flags & _NPU:
        message = f"flags {flags:#x} ask for devices of other kinds; this driver has an NPU"
        raise errors.uninitialized(message)
    ze.zeInit(flags)


def zeInitDrivers(desc: Any) -> list[ze.ze_driver_handle_t]:
    """Initialise the library as zeInit, and return all drivers."""
    zeInit(desc.flags)
    return ze.zeDriverGet()


def zeDeviceGetProperties(hDevice: ze.ze_device_handle_t, pDeviceProperties: int) -> None:
    """Describe a device, in the unit of time that the structure's type asks for.

    Chained structures are for the commands that mutable lists can change, and for the kind of
    silicon. Source: docs/reference/level_zero.md#device.
    """
    properties = ze.zeDeviceGetProperties(hDevice)
    name = "ze_device_properties_t"
    (stype, _), *chained = chain(pDeviceProperties)
    if stype == description().structs[name].stype:
        nanoseconds = round(1e9 / properties.timerResolution)
        properties = replace(properties, timerResolution=nanoseconds)
    write(name, pDeviceProperties, properties)
    changeable = sum(ze.ze_mutable_command_exp_flags_t)
    answers = {
        "ze_mutable_command_list_exp_properties_t": {"mutableCommandFlags": changeable},
        "ze_device_ip_version_ext_t": {"ipVersion": 0},
    }
    by_stype = {description().structs[kind].stype: kind for kind in answers}
    for stype, address in chained:
        kind = by_stype.get(stype)
        if kind is not None:
            write(kind, address, SimpleNamespace(**answers[kind]))


def zeDeviceGetCommandQueueGroupProperties(
    hDevice: ze.ze_device_handle_t,
) -> list[ze.ze_command_queue_group_properties_t]:
    """Describe the group of queues that the public driver has, without this driver's copy group."""
    return ze.zeDeviceGetCommandQueueGroupProperties(hDevice)[:1]


def zeMemAllocHost(hContext: Any, host_desc: Any, size: int, alignment: int) -> ze.Memory:
    """Allocate host memory, or import pages of the host, which must be there."""
    request = host_desc.pNext
    if not isinstance(request, ze.ze_external_memmap_sysmem_ext_desc_t):
        return ze.zeMemAllocHost(hContext, size, alignment, host_desc)
    ze.zeContextGetStatus(hContext)  # checks the handle
    errors.check_known(host_desc.flags, ze.ze_host_mem_alloc_flags_t)
    pages: Any = request.pSystemMemory
    if pages.size != size:
        message = f"size {size} differs from the {pages.size} bytes of the mapped memory"
        raise errors.unsupported_size(message)
    return _imported(hContext, pages, not host_desc.flags & _READ_ONLY)


def _imported(context: ze.ze_context_handle_t, pages: Span, writable: bool) -> ze.Memory:
    """Return memory that stands for pages of the host.

    Raises:
        ZeError: OUT_OF_DEVICE_MEMORY: some are not mapped, or may not be written.
            Source: docs/reference/level_zero.md#loaders-and-function-tables.
    """
    address, size = errors.not_null(pages.address, "pSystemMemory"), pages.size
    if not size:
        raise errors.unsupported_size("the memory to map is empty")
    if address % PAGE_BYTES:
        raise errors.unsupported_alignment(f"imported memory at {address:#x} begins within a page")
    if size >> 48 or not host().populate(address, size, writable):
        access = "be written" if writable else "be read"
        message = f"{size} bytes at {address:#x} cannot {access}; is the memory mapped?"
        raise errors.failed(ze_result_t.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, message)
    with errors.failing_as({OutOfMemory: ze_result_t.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY}):
        buffer = PageBuffer(host(), address, size, writable)
    return context.map_bounced(address, buffer.data, writable, buffer)


_READ_ONLY = (
    ze.ze_host_mem_alloc_flags_t.ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY
    | ze.ze_host_mem_alloc_flags_t.ZE_HOST_MEM_ALLOC_FLAG_BIAS_WRITE_COMBINED
)


@checked
def zeMemAllocShared(
    hContext: ze.ze_context_handle_t,
    device_desc: ze.ze_device_mem_alloc_desc_t,
    size: int,
    alignment: int,
    hDevice: ze.ze_device_handle_t,
) -> ze.Memory:
    """Allocate memory for host and device, which may be exported as device memory may."""
    if device_desc.pNext is None:
        return ze.zeMemAllocShared(hContext, size, alignment, hDevice)
    check_device(hContext, hDevice)
    shared = ze.ze_memory_type_t.ZE_MEMORY_TYPE_SHARED
    return hContext.allocate_external(size, alignment, shared, device_desc.pNext)


def zeMemFree(hContext: ze.ze_context_handle_t, ptr: int) -> None:
    """Free the memory that begins at an address."""
    ze.zeMemFree(hContext, _memory_at(hContext, ptr))


def zeMemGetIpcHandle(hContext: ze.ze_context_handle_t, ptr: int) -> ze.ze_ipc_mem_handle_t:
    """Return the handle by which another process opens the memory that begins at an address."""
    return ze.zeMemGetIpcHandle(hContext, _memory_at(hContext, ptr))


def zeMemCloseIpcHandle(hContext: ze.ze_context_handle_t, ptr: int) -> None:
    """Close memory of another process."""
    ze.zeMemCloseIpcHandle(hContext, _memory_at(hContext, ptr))


def _memory_at(context: ze.ze_context_handle_t, address: int) -> ze.Memory:
    ze.zeMemGetAllocProperties(context, address)  # checks the handle
    memory = context.find(address)
    if memory is None or memory.address != address:
        message = f"ptr is {address:#x}: no memory of this context begins there"
        raise errors.invalid_argument(message)
    return memory


def zeMemGetAllocProperties(
    hContext: ze.ze_context_handle_t, ptr: int, pNext: Any = None
) -> tuple[Any, ze.ze_device_handle_t | None]:
    """Describe memory; the device is that of device and shared memory."""
    properties = ze.zeMemGetAllocProperties(hContext, ptr, pNext)
    kinds = (
        ze.ze_memory_type_t.ZE_MEMORY_TYPE_DEVICE,
        ze.ze_memory_type_t.ZE_MEMORY_TYPE_SHARED,
    )
    return properties, hContext.device if properties.type in kinds else None


def zeFenceCreate(hCommandQueue: ze.ze_command_queue_handle_t, desc: Any) -> ze.ze_fence_handle_t:
    """Create a fence."""
    return ze.zeFenceCreate(hCommandQueue, desc.flags)


def pfnCreate3(hContext: Any, hDevice: Any, desc: Any) -> Any:
    """Create a graph as pfnCreate2, and its build log, which the caller also gets for a failure."""
    try:
        return _graphs().pfnCreate3(hContext, hDevice, desc)
    except GraphCreationError as error:
        raise FailureWithResults(error, (None, error.log)) from error


def _graphs() -> Any:
    return extension_tables[ze.GRAPH_EXTENSION]


def pfnGetNativeBinary2(hGraph: Any) -> Span:
    """Return a graph's blob in memory of the host, where it stays as long as the graph."""
    blob = _graphs().pfnGetNativeBinary2(hGraph)
    if hGraph not in _blobs:
        address, _ = host().map_copy(blob)
        _blobs[hGraph] = Span(address, len(blob))
    return _blobs[hGraph]


def pfnDestroy(hGraph: Any) -> None:
    """Destroy a graph, with its blob in memory of the host."""
    _graphs().pfnDestroy(hGraph)
    found = _blobs.pop(hGraph, None)
    if found is not None:
        host().unmap(found.address, found.size)


_blobs: dict[Any, Span] = {}


def pfnSetArgumentValue2(hGraph: Any, argIndex: int, pArgValue: int) -> None:
    """Set location and strides of an argument, by a chain that begins with either structure."""
    kinds = ("ze_graph_argument_value_tensor_t", "ze_graph_argument_value_strides_t")
    stype, _ = next(chain(pArgValue))
    for kind in kinds:
        if stype == description().structs[kind].stype:
            return _graphs().pfnSetArgumentValue2(hGraph, argIndex, read(kind, pArgValue))
    raise errors.invalid_argument(f"pArgValue has the stype {stype:#x}; give a tensor or strides")


def pfnGetExtension(hDriver: Any, pExtension: int) -> None:
    """Write the address of an extension's function table to where the caller's structure asks."""
    place = host().structure_at("ze_driver_extension_npu_ext_t", pExtension)
    for address, name in ((place.name, "name"), (place.ppFunctionAddress, "ppFunctionAddress")):
        errors.not_null(address, name)
    request = ze.ze_driver_extension_npu_ext_t(host().text_at(place.name), place.version)
    drivers = extension_tables[ze.DRIVER_EXTENSION]
    table = drivers.pfnGetExtension(hDriver, request)
    host().put_number("uintptr_t", place.ppFunctionAddress, TABLES[type(table).__name__])


def pfnProfilingQueryGetData(hProfilingQuery: Any, profilingType: Any) -> bytes:
    """Return the records of an inference as they lie in C's memory."""
    table = extension_tables[ze.PROFILING_EXTENSION]
    records = table.pfnProfilingQueryGetData(hProfilingQuery, profilingType)
    if isinstance(records, bytes) or not records:
        return bytes(records)
    kind = type(records[0]).__name__
    return b"".join(structure_bytes(kind, record) for record in records)
