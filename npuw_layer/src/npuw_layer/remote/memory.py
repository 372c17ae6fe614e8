"""Memory for remote tensors: allocated, or imported from its owner.

Source: docs/reference/npuw.md#remote-tensors; Intel KB 000101553 (values of SHARED_BUF).
"""

from __future__ import annotations

import logging
import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driver_layer.support.files import open_regular
from driver_layer.support.mapped_file import MappedFile
from npuw_layer.backends.protocols import Array, ImportsMemory, RemoteMemory
from npuw_layer.errors import RemoteError
from npuw_layer.remote.properties import FileDescriptor, MemType, RemoteProperties, TensorType

_log = logging.getLogger(__name__)

_ALIGNMENT = 64
"""Alignment of a tensor's beginning: kernels read whole vectors."""

_DESCRIPTORS = 1 << 20
"""Bound between descriptors and addresses: Linux gives no process more descriptors (fs.nr_open);
addresses, the device's and a process's, are larger."""


@dataclass(frozen=True, slots=True)
class MemoryRange:
    """A tensor's place in memory of a device.

    Args:
        memory: the memory.
        offset: the tensor's beginning in the memory, bytes.
        owned: whether the memory is freed with the tensor; otherwise its allocator frees it.
    """

    memory: RemoteMemory
    offset: int = 0
    owned: bool = True

    @property
    def address(self) -> int:
        """Device address of the tensor."""
        return self.memory.address + self.offset

    def release(self) -> None:
        """Free the memory if the tensor owns it."""
        if self.owned:
            self.memory.free()


def make_memory(device: ImportsMemory, properties: RemoteProperties, nbytes: int) -> MemoryRange:
    """Allocate or import the memory of a remote tensor of ``nbytes``.

    Raises:
        RemoteError: the passed memory is of another kind, or is too small.
        DeviceError: the device failed, e.g. for lack of addresses.
    """
    match properties.mem_type:
        case MemType.L0_INTERNAL_BUF:
            return MemoryRange(device.allocate_remote(whole_pages(nbytes)))
        case MemType.SHARED_BUF:
            return _shared(device, properties, nbytes)
        case MemType.CPU_VA:
            return _host_pages(device, properties, nbytes)
        case MemType.MMAPED_FILE:
            assert properties.file is not None  # checked by parse_properties
            return _mapped_file(device, properties.file, nbytes)


def _shared(device: ImportsMemory, properties: RemoteProperties, nbytes: int) -> MemoryRange:
    """Find memory that the device's runtime allocated: by object, address or descriptor."""
    handle = properties.handle
    if isinstance(handle, int) and not isinstance(handle, bool) and 0 <= handle < _DESCRIPTORS:
        return MemoryRange(device.import_descriptor(handle, nbytes, _is_read_only(properties)))
    memory, offset = device.find_memory(handle)
    _check_room("SHARED_BUF", memory.nbytes - offset, nbytes)
    _check_writable("SHARED_BUF", memory.writable, properties)
    return MemoryRange(memory, offset, owned=False)


def _is_read_only(properties: RemoteProperties) -> bool:
    return properties.tensor_type is TensorType.INPUT


def _check_room(what: str, there: int, wanted: int) -> None:
    if there < wanted:
        raise RemoteError(f"{what}: the tensor needs {wanted} bytes, the memory has {there}")


def _check_writable(what: str, writable: bool, properties: RemoteProperties) -> None:
    if not (writable or _is_read_only(properties)):
        raise RemoteError(f"{what}: the memory is read-only; set TENSOR_TYPE to INPUT")


def _host_pages(device: ImportsMemory, properties: RemoteProperties, nbytes: int) -> MemoryRange:
    data = _bytes_of(properties.handle)
    begin = data.ctypes.data % PAGE_BYTES
    if begin or data.size % PAGE_BYTES or not data.size:
        raise RemoteError(
            f"CPU_VA: {data.size} bytes that begin {begin} bytes behind a page boundary; the NPU "
            f"maps complete pages of {PAGE_BYTES}; use npuw_layer.page_aligned_bytes"
        )
    _check_room("CPU_VA", data.size, nbytes)
    _check_writable("CPU_VA", data.flags.writeable, properties)
    return MemoryRange(device.import_host(data, _is_read_only(properties)))


def _bytes_of(handle: object) -> Array:
    """View host memory as bytes, in place."""
    try:
        view = memoryview(handle)  # pyright: ignore[reportArgumentType] (TypeError if it is none)
        return np.frombuffer(view.cast("B") if view.nbytes else view, np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise RemoteError(f"CPU_VA: MEM_HANDLE is not a contiguous array: {error}") from None


def _mapped_file(device: ImportsMemory, file: FileDescriptor, nbytes: int) -> MemoryRange:
    """Map a file; read the data into memory instead if its offset is not aligned for a tensor."""
    path = Path(file.path)
    data = _map(path, file.offset, nbytes)
    if file.offset % _ALIGNMENT == 0:
        skipped = file.offset // PAGE_BYTES * PAGE_BYTES
        memory = device.import_host(data[skipped : file.offset + nbytes], read_only=True)
        return MemoryRange(memory, file.offset - skipped)
    _log.info("%s: offset %d is not a multiple of %d; copied", path, file.offset, _ALIGNMENT)
    span = MemoryRange(device.allocate_remote(whole_pages(nbytes)))
    span.memory.data[:nbytes] = data[file.offset : file.offset + nbytes]
    return span


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


PAGE_BYTES = 4096
"""Page size of the NPU."""


def whole_pages(nbytes: int) -> int:
    """Round bytes up to pages; at least one page."""
    return max(1, -(-nbytes // PAGE_BYTES)) * PAGE_BYTES


def page_aligned_bytes(nbytes: int) -> npt.NDArray[np.uint8]:
    """Allocate zeroed host pages for at least ``nbytes``: a MEM_HANDLE for CPU_VA."""
    return np.frombuffer(mmap.mmap(-1, whole_pages(nbytes)), np.uint8)
