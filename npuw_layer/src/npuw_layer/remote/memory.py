"""Memory for remote tensors: allocated, or somebody's own that the device is given.

Source: fact sheets simulators_npu §e and npuw §e.4; Intel KB 000101553 (what SHARED_BUF takes).
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driver_layer import ze
from driver_layer.mapped_file import MappedFile
from driver_layer.regular_file import open_regular
from npuw_layer.backends.level_zero_memory import DeviceMemory, reported
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import RemoteError
from npuw_layer.remote.pages import PAGE_BYTES, whole_pages
from npuw_layer.remote.properties import FileDescriptor, MemType, RemoteProperties, TensorType

_log = logging.getLogger(__name__)

_ALIGNMENT = 64
"""Where a tensor may begin: kernels read whole vectors."""

_DESCRIPTORS = 1 << 20
"""Numbers below are descriptors, of which Linux gives no process more (fs.nr_open); addresses, the
device's and a process's, are above."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor's place in memory of a context.

    Args:
        memory: what the context knows.
        offset: where in it the tensor begins, bytes.
        owned: whether it is freed with the tensor, or by whoever allocated it.
    """

    memory: DeviceMemory
    offset: int = 0
    owned: bool = True

    @property
    def address(self) -> int:
        """Where the device sees the tensor."""
        return self.memory.address + self.offset

    def release(self) -> None:
        """Give the memory back if it is the tensor's own."""
        if self.owned:
            self.memory.free()


def make_memory(
    context: ze.ze_context_handle_t, properties: RemoteProperties, nbytes: int
) -> Piece:
    """Allocate, or import, what a remote tensor of ``nbytes`` is to lie in.

    Raises:
        RemoteError: what was handed over is not such memory, or is too small.
        DeviceError: Level Zero failed, e.g. for want of addresses.
    """
    match properties.mem_type:
        case MemType.L0_INTERNAL_BUF:
            return _allocated(context, nbytes)
        case MemType.SHARED_BUF:
            return _shared(context, properties, nbytes)
        case MemType.CPU_VA:
            return _host_pages(context, properties, nbytes)
        case MemType.MMAPED_FILE:
            assert properties.file is not None  # as parse_properties says
            return _mapped_file(context, properties.file, nbytes)


def _allocated(context: ze.ze_context_handle_t, nbytes: int) -> Piece:
    size = whole_pages(nbytes)
    with reported(f"zeMemAllocHost of {size} bytes"):
        return Piece(DeviceMemory(context, ze.zeMemAllocHost(context, size)))


def _shared(context: ze.ze_context_handle_t, properties: RemoteProperties, nbytes: int) -> Piece:
    """Find memory that was allocated through Level Zero: by object, address or descriptor."""
    handle = properties.handle
    if not isinstance(handle, ze.Memory | int) or isinstance(handle, bool):
        raise RemoteError(
            f"SHARED_BUF: {_kind(handle)} is not allocated through Level Zero. Memory of malloc, "
            "new or numpy does not work: pass it as CPU_VA if it is whole pages, or copy it into "
            "an L0_INTERNAL_BUF tensor with copy_from"
        )
    if isinstance(handle, int) and 0 <= handle < _DESCRIPTORS:
        return _imported(context, handle, properties, nbytes)
    found = context.find(handle) if context.alive else None
    if found is None:
        raise RemoteError(
            f"SHARED_BUF: {_kind(handle)} is not, or no longer, memory of this context. Allocate "
            "it with zeMemAllocHost, -Shared or -Device on get_params()['L0_CONTEXT']; of another "
            "context it has to be copied"
        )
    offset = handle - found.address if isinstance(handle, int) else 0
    _check_room("SHARED_BUF", found.size - offset, nbytes)
    memory = DeviceMemory(context, found)
    _check_writable("SHARED_BUF", memory.writable, properties)
    return Piece(memory, offset, owned=False)


def _imported(
    context: ze.ze_context_handle_t, descriptor: int, properties: RemoteProperties, nbytes: int
) -> Piece:
    """Map a DMA-BUF of another context or process; its descriptor stays the caller's."""
    can = ze.zeDeviceGetExternalMemoryProperties(context.device).memoryAllocationImportTypes
    dma_buf = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF
    if not can & dma_buf:
        raise RemoteError("SHARED_BUF: this driver imports no descriptors; copy the memory")
    chained = ze.ze_external_memory_import_fd_t(dma_buf, descriptor)
    desc = ze.ze_host_mem_alloc_desc_t(_flags(_is_read_only(properties)), chained)
    try:
        return Piece(DeviceMemory(context, ze.zeMemAllocHost(context, nbytes, host_desc=desc)))
    except ze.ZeError as error:
        raise RemoteError(f"SHARED_BUF: descriptor {descriptor}: {error}") from error


def _flags(read_only: bool) -> ze.ze_host_mem_alloc_flags_t:
    flags = ze.ze_host_mem_alloc_flags_t
    return flags.ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY if read_only else flags.NONE


def _is_read_only(properties: RemoteProperties) -> bool:
    return properties.tensor_type is TensorType.INPUT


def _kind(handle: object) -> str:
    if isinstance(handle, ze.Memory):
        return f"memory at {handle.address:#x}"
    is_address = isinstance(handle, int) and not isinstance(handle, bool)
    return f"address {handle:#x}" if is_address else f"a {type(handle).__name__}"


def _check_room(what: str, there: int, wanted: int) -> None:
    if there < wanted:
        raise RemoteError(f"{what}: the tensor has {wanted} bytes, {there} are there")


def _check_writable(what: str, writable: bool, properties: RemoteProperties) -> None:
    if not (writable or _is_read_only(properties)):
        raise RemoteError(
            f"{what}: the memory is read-only; with TENSOR_TYPE INPUT that is no harm"
        )


def _host_pages(
    context: ze.ze_context_handle_t, properties: RemoteProperties, nbytes: int
) -> Piece:
    data = _bytes_of(properties.handle)
    begin = data.ctypes.data % PAGE_BYTES
    if begin or data.size % PAGE_BYTES or not data.size:
        raise RemoteError(
            f"CPU_VA: {data.size} bytes that begin {begin} behind a page's border; the NPU maps "
            f"whole pages of {PAGE_BYTES} (npuw_layer.page_aligned_bytes makes them)"
        )
    _check_room("CPU_VA", data.size, nbytes)
    _check_writable("CPU_VA", data.flags.writeable, properties)
    return _import(context, data, _is_read_only(properties))


def _bytes_of(handle: object) -> Array:
    """See host memory as bytes, in place."""
    try:
        view = memoryview(handle)  # pyright: ignore[reportArgumentType] (TypeError if it is none)
        return np.frombuffer(view.cast("B") if view.nbytes else view, np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise RemoteError(
            f"CPU_VA: MEM_HANDLE is an array, or else a buffer, in one piece: {error}"
        ) from None


def _import(context: ze.ze_context_handle_t, data: Array, read_only: bool) -> Piece:
    chained = ze.ze_external_memmap_sysmem_ext_desc_t(data)
    desc = ze.ze_host_mem_alloc_desc_t(_flags(read_only), chained)
    with reported(f"importing {data.size} bytes"):
        memory = ze.zeMemAllocHost(context, data.size, host_desc=desc)
    return Piece(DeviceMemory(context, memory))


def _mapped_file(context: ze.ze_context_handle_t, file: FileDescriptor, nbytes: int) -> Piece:
    """Map a file; what begins where no tensor may is read into memory instead."""
    path = Path(file.path)
    data = _map(path, file.offset, nbytes)
    if file.offset % _ALIGNMENT == 0:
        skipped = file.offset // PAGE_BYTES * PAGE_BYTES
        piece = _import(context, data[skipped : file.offset + nbytes], read_only=True)
        return Piece(piece.memory, file.offset - skipped)
    _log.info("%s: offset %d is no multiple of %d; copied", path, file.offset, _ALIGNMENT)
    piece = _allocated(context, nbytes)
    piece.memory.data[:nbytes] = data[file.offset : file.offset + nbytes]
    return piece


def _map(path: Path, offset: int, nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    try:
        with open_regular(path) as file:
            there = max(0, os.fstat(file.fileno()).st_size - offset)
            begin = f", from byte {offset} on" if offset else ""
            _check_room(f"MMAPED_FILE {path}{begin}", there, nbytes)
            return np.frombuffer(MappedFile.of(file), np.uint8)
    except OSError as error:
        raise RemoteError(f"MMAPED_FILE {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise RemoteError(f"MMAPED_FILE {path}: {error}") from None
