"""Memory handed to another process by an IPC handle.

A handle names the exporting process, its descriptor of the memory, and the memory itself. Who gets
it opens that process's descriptor, which needs the process to be alive and of the same user. Or the
descriptor is passed along, over a socket, and its new number put into the handle's first four
bytes: then the exporter may be gone. In both cases it must be the memory that the handle names: a
number that has since come to mean something else is refused.

Source: Level Zero core specification 1.17. The public NPU driver has no IPC handles (fact sheet
elf_driver §5.3); those of GPUs begin with the descriptor too.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

from driver_layer.npu.shareable import Shareable, check_descriptors_left, duplicate
from driver_layer.ze import external_types as x
from driver_layer.ze import types as t
from driver_layer.ze.context import Memory, check_device, own_memory, ze_context_handle_t
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.external_memory import handing_on
from driver_layer.ze.handles import check, given
from driver_layer.ze.result import check_known, failed, ze_result_t

_LAYOUT = struct.Struct("<i4siIQQQ")
_MARK = b"NPU1"
_SHARED_BY_HANDLE = (
    t.ze_memory_type_t.ZE_MEMORY_TYPE_HOST,
    t.ze_memory_type_t.ZE_MEMORY_TYPE_DEVICE,
)


@dataclass(frozen=True, slots=True)
class _Named:
    """What a handle says."""

    descriptor: int
    process: int
    kind: t.ze_memory_type_t
    size: int
    device: int
    inode: int

    def pack(self) -> x.ze_ipc_mem_handle_t:
        """Write the handle."""
        fields = (self.process, self.kind, self.size, self.device, self.inode)
        packed = _LAYOUT.pack(self.descriptor, _MARK, *fields)
        return x.ze_ipc_mem_handle_t(packed.ljust(x.ZE_MAX_IPC_HANDLE_SIZE, b"\0"))

    @staticmethod
    def unpack(handle: x.ze_ipc_mem_handle_t) -> _Named:
        """Read a handle, which may be anything."""
        if len(handle.data) != x.ZE_MAX_IPC_HANDLE_SIZE:
            raise _invalid(f"a handle has {x.ZE_MAX_IPC_HANDLE_SIZE} bytes, not {len(handle.data)}")
        descriptor, mark, process, kind, size, device, inode = _LAYOUT.unpack_from(handle.data)
        if mark != _MARK or kind not in _SHARED_BY_HANDLE or process <= 0 or not size:
            raise _invalid("these bytes are no handle of this driver")
        return _Named(descriptor, process, t.ze_memory_type_t(kind), size, device, inode)

    def is_of(self, descriptor: int | str) -> bool:
        """Tell whether a descriptor of this process, or a path, is of the memory."""
        try:
            status = os.stat(descriptor)
        except (OSError, OverflowError):
            return False
        return (status.st_dev, status.st_ino) == (self.device, self.inode)


def zeMemGetIpcHandle(hContext: ze_context_handle_t, ptr: Memory) -> x.ze_ipc_mem_handle_t:
    """Give a handle by which another process can open memory; the same one until it is put back.

    Args:
        hContext: whose.
        ptr: host or device memory that was allocated with ze_external_memory_export_desc_t.

    Raises:
        ZeError: INVALID_ARGUMENT: it is not such memory of this context; UNSUPPORTED_FEATURE: it
            was not allocated to be exported; OUT_OF_HOST_MEMORY: the process has no descriptors
            left.
    """
    memory = own_memory(check(hContext, ze_context_handle_t), ptr)
    if memory.kind not in _SHARED_BY_HANDLE:
        raise _invalid("shared memory stays in its process; allocate host or device memory")
    if memory.shareable is None or not memory.exportable:
        message = "allocate it with ze_external_memory_export_desc_t"
        raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, message)
    if memory.given_out is None:
        with handing_on():
            descriptor = memory.shareable.export_fd()
        status = os.fstat(descriptor)
        place = (status.st_dev, status.st_ino)
        named = _Named(descriptor, os.getpid(), memory.kind, memory.size, *place)
        memory.given_out = named.pack(), descriptor
    return memory.given_out[0]


def zeMemPutIpcHandle(hContext: ze_context_handle_t, handle: x.ze_ipc_mem_handle_t) -> None:
    """Take a handle back: nobody can open it any more; who has opened it keeps the memory.

    Raises:
        ZeError: INVALID_ARGUMENT: this context gave no such handle, or it was put back before, or
            went with its memory.
    """
    context = check(hContext, ze_context_handle_t)
    given(handle, "handle")
    for memory in list(context.memory.values()):
        if memory.given_out is not None and memory.given_out[0] == handle:
            memory.put_back()
            return
    raise _invalid("no handle that this context has given out")


def zeMemOpenIpcHandle(
    hContext: ze_context_handle_t,
    hDevice: ze_device_handle_t,
    handle: x.ze_ipc_mem_handle_t,
    flags: x.ze_ipc_memory_flags_t = x.ze_ipc_memory_flags_t.NONE,
) -> Memory:
    """Reach memory of another process; each call gives another address.

    It stays as long as it is open here, whatever becomes of the exporter.

    Args:
        hContext: who is to reach it.
        hDevice: the context's device.
        handle: from zeMemGetIpcHandle, in that process.
        flags: without effect.

    Returns:
        Memory of the kind that was exported; to be closed with zeMemCloseIpcHandle.

    Raises:
        ZeError: INVALID_ENUMERATION: unknown flags; INVALID_ARGUMENT: no handle, or the exporter
            has ended, freed the memory or put the handle back; OUT_OF_DEVICE_MEMORY;
            OUT_OF_HOST_MEMORY: this process has no descriptors left.
    """
    context = check(hContext, ze_context_handle_t)
    check_device(context, hDevice)
    check_known(flags, x.ze_ipc_memory_flags_t)
    named = _Named.unpack(given(handle, "handle"))
    with handing_on():
        descriptor = _descriptor(named)
        try:
            shareable = Shareable.import_fd(descriptor, named.size)
        finally:
            os.close(descriptor)
    memory = context.map_shareable(shareable, named.kind)
    memory.opened = True
    return memory


def zeMemCloseIpcHandle(hContext: ze_context_handle_t, ptr: Memory) -> None:
    """Close memory of another process.

    Raises:
        ZeError: INVALID_ARGUMENT: it was not opened in this context, or was closed before.
    """
    context = check(hContext, ze_context_handle_t)
    memory = own_memory(context, ptr)
    if not memory.opened:
        raise _invalid("memory of this process is freed with zeMemFree")
    context.release(memory)


def _descriptor(named: _Named) -> int:
    """Give a new descriptor of the memory: from what was passed along, or from the exporter."""
    if named.is_of(named.descriptor):
        return duplicate(named.descriptor)
    path = f"/proc/{named.process}/fd/{named.descriptor}"
    try:
        if named.is_of(path):  # what is something else is not even opened
            found = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            if named.is_of(found):
                return found
            os.close(found)
    except OSError as error:
        check_descriptors_left(error)
        message = f"process {named.process} does not export this memory: {error.strerror}"
        raise _invalid(message) from None
    raise _invalid(f"process {named.process} does not export this memory any more")


def _invalid(message: str) -> Exception:
    return failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
