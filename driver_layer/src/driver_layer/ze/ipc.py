"""Memory that is shared with another process by an IPC handle.

A handle names the exporting process, its descriptor of the memory, and the memory itself. The
receiver opens that process's descriptor, which requires that the process is alive and of the same
user. Alternatively, the descriptor is sent over a socket, and its new number is written to the
handle's first four bytes; then the exporter may have ended. In both cases the descriptor must be of
the memory that the handle names: a number that was reused for another file is rejected.

Source: Level Zero core specification 1.17. The public NPU driver has no IPC handles
(docs/reference/level_zero.md#memory); those of GPUs begin with the descriptor, too.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

from driver_layer.npu.shareable import Shareable
from driver_layer.ze import errors
from driver_layer.ze import types as t
from driver_layer.ze.calls import checked
from driver_layer.ze.context import Memory, check_device, own_memory, ze_context_handle_t
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.external_memory import SHARING_CODES
from driver_layer.ze.host_process import HostProcess

_LAYOUT = struct.Struct("<i4siIQQQ")
_MARK = b"NPU1"
_SHARED_BY_HANDLE = (
    t.ze_memory_type_t.ZE_MEMORY_TYPE_HOST,
    t.ze_memory_type_t.ZE_MEMORY_TYPE_DEVICE,
)


@dataclass(frozen=True, slots=True)
class _Named:
    """Fields of a handle."""

    descriptor: int
    process: int
    kind: t.ze_memory_type_t
    size: int
    device: int
    inode: int

    def pack(self) -> t.ze_ipc_mem_handle_t:
        """Encode the handle."""
        fields = (self.process, self.kind, self.size, self.device, self.inode)
        packed = _LAYOUT.pack(self.descriptor, _MARK, *fields)
        return t.ze_ipc_mem_handle_t(packed.ljust(t.ZE_MAX_IPC_HANDLE_SIZE, b"\0"))

    @staticmethod
    def unpack(handle: t.ze_ipc_mem_handle_t) -> _Named:
        """Decode a handle of untrusted content."""
        packed = bytes(handle.data)
        if len(packed) != t.ZE_MAX_IPC_HANDLE_SIZE:
            message = f"an IPC handle has {t.ZE_MAX_IPC_HANDLE_SIZE} bytes, not {len(packed)}"
            raise errors.invalid_argument(message)
        descriptor, mark, process, kind, size, device, inode = _LAYOUT.unpack_from(packed)
        if mark != _MARK or kind not in _SHARED_BY_HANDLE or process <= 0 or not size:
            raise errors.invalid_argument("the bytes are not an IPC handle of this driver")
        return _Named(descriptor, process, t.ze_memory_type_t(kind), size, device, inode)

    def is_of(self, descriptor: int | str) -> bool:
        """Return whether a descriptor of this process, or a path, leads to the memory."""
        try:
            status = os.stat(descriptor)
        except (OSError, OverflowError):
            return False
        return (status.st_dev, status.st_ino) == (self.device, self.inode)


@checked
def zeMemGetIpcHandle(hContext: ze_context_handle_t, ptr: Memory) -> t.ze_ipc_mem_handle_t:
    """Return a handle by which another process can open memory; the same one until it is put back.

    Args:
        hContext: the context.
        ptr: host or device memory that was allocated with ze_external_memory_export_desc_t.

    Raises:
        ZeError: INVALID_ARGUMENT: the memory is not host or device memory of this context;
            UNSUPPORTED_FEATURE: the memory was not allocated for export; OUT_OF_HOST_MEMORY: the
            process has no descriptors left.
    """
    memory = own_memory(hContext, ptr)
    if memory.kind not in _SHARED_BY_HANDLE:
        message = "shared memory cannot be exported; allocate host or device memory"
        raise errors.invalid_argument(message)
    if memory.shareable is None or not memory.exportable:
        message = "the memory was not allocated with ze_external_memory_export_desc_t"
        raise errors.unsupported_feature(message)
    if memory.given_out is None:
        with errors.failing_as(SHARING_CODES):
            descriptor = hContext.host.give_descriptor(memory.shareable.descriptor)
        status = os.fstat(memory.shareable.descriptor)
        place = (status.st_dev, status.st_ino)
        named = _Named(descriptor, hContext.host.number, memory.kind, memory.size, *place)
        memory.given_out = named.pack(), descriptor
    return memory.given_out[0]


@checked
def zeMemPutIpcHandle(hContext: ze_context_handle_t, handle: t.ze_ipc_mem_handle_t) -> None:
    """Invalidate a handle; processes that have opened it keep the memory.

    Raises:
        ZeError: INVALID_ARGUMENT: the handle is not of this context, was put back before, or its
            memory was freed.
    """
    for memory in list(hContext.memory.values()):
        if memory.given_out is not None and memory.given_out[0].data == bytes(handle.data):
            memory.put_back(hContext.host)
            return
    raise errors.invalid_argument("the handle is not one that this context has exported")


@checked
def zeMemOpenIpcHandle(
    hContext: ze_context_handle_t,
    hDevice: ze_device_handle_t,
    handle: t.ze_ipc_mem_handle_t,
    flags: t.ze_ipc_memory_flags_t = t.ze_ipc_memory_flags_t.NONE,
) -> Memory:
    """Map memory of another process; each call returns another address.

    The memory stays until it is closed here, even if the exporter ends.

    Args:
        hContext: the context to map the memory into.
        hDevice: the context's device.
        handle: handle that zeMemGetIpcHandle returned in the other process.
        flags: without effect.

    Returns:
        Memory of the exported kind; close it with zeMemCloseIpcHandle.

    Raises:
        ZeError: INVALID_ENUMERATION: unknown flags; INVALID_ARGUMENT: the handle is malformed, or
            the exporter has ended, freed the memory or put the handle back;
            OUT_OF_DEVICE_MEMORY; OUT_OF_HOST_MEMORY: this process has no descriptors left.
    """
    check_device(hContext, hDevice)
    errors.check_known(flags, t.ze_ipc_memory_flags_t)
    named = _Named.unpack(handle)
    with errors.failing_as(SHARING_CODES):
        shareable = _opened(named, hContext.host)
    memory = hContext.map_shareable(shareable, named.kind)
    memory.opened = True
    return memory


@checked
def zeMemCloseIpcHandle(hContext: ze_context_handle_t, ptr: Memory) -> None:
    """Close memory of another process.

    Raises:
        ZeError: INVALID_ARGUMENT: the memory was not opened in this context, or closed before.
    """
    memory = own_memory(hContext, ptr)
    if not memory.opened:
        raise errors.invalid_argument("the memory is this process's; free it with zeMemFree")
    hContext.release(memory)


def _opened(named: _Named, host: HostProcess) -> Shareable:
    """Map the memory: by the descriptor that was sent to the host, or by the exporter's."""
    exporters = f"/proc/{named.process}/fd/{named.descriptor}"
    for path in (host.path_of(named.descriptor), exporters):
        if named.is_of(path):  # other files are not even opened
            found = Shareable.open(path, named.size)
            if named.is_of(found.descriptor):
                return found
            found.close()
    raise errors.invalid_argument(f"process {named.process} no longer exports this memory")
