"""Types of memory, also of other processes, and of fences; versions. Names are the specification's.

Source: Level Zero core specification 1.17.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np
import numpy.typing as npt


class ze_external_memory_type_flags_t(IntFlag):
    """Forms in which memory is exported and imported.

    OPAQUE_FD and DMA_BUF use the same kind of descriptor; STANDARD_ALLOCATION is host memory, which
    zeMemAllocHost can map (ZE_extension_external_memmap_sysmem).
    """

    NONE = 0
    ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD = 1
    ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF = 2
    ZE_EXTERNAL_MEMORY_TYPE_FLAG_STANDARD_ALLOCATION = 0x100


@dataclass(frozen=True, slots=True)
class ze_external_memory_export_desc_t:
    """Request for exportable memory; chained to an allocation's descriptor."""

    flags: ze_external_memory_type_flags_t


@dataclass(frozen=True, slots=True)
class ze_external_memory_import_fd_t:
    """Request for memory that another process exported; the caller keeps the descriptor."""

    flags: ze_external_memory_type_flags_t
    fd: int


@dataclass(frozen=True, slots=True)
class ze_external_memory_export_fd_t:
    """Request for an allocation's descriptor, and the answer; the caller must close ``fd``."""

    flags: ze_external_memory_type_flags_t
    fd: int = -1


@dataclass(frozen=True, slots=True)
class ze_device_external_memory_properties_t:
    """Forms in which a device's memory can be exported and imported; images are not supported."""

    memoryAllocationImportTypes: ze_external_memory_type_flags_t
    memoryAllocationExportTypes: ze_external_memory_type_flags_t
    imageImportTypes: ze_external_memory_type_flags_t = ze_external_memory_type_flags_t.NONE
    imageExportTypes: ze_external_memory_type_flags_t = ze_external_memory_type_flags_t.NONE


ZE_MAX_IPC_HANDLE_SIZE = 64
"""Size of an IPC handle in bytes."""


class ze_ipc_memory_flags_t(IntFlag):
    """Caching of another process's memory; without effect on this device."""

    NONE = 0
    ZE_IPC_MEMORY_FLAG_BIAS_CACHED = 1
    ZE_IPC_MEMORY_FLAG_BIAS_UNCACHED = 2


@dataclass(frozen=True, slots=True)
class ze_ipc_mem_handle_t:
    """Identifier of memory for another process: ZE_MAX_IPC_HANDLE_SIZE bytes, passed unchanged.

    The first four bytes are the descriptor's number, as in other drivers; see ``ze.ipc``.
    """

    data: bytes


ze_external_desc_t = ze_external_memory_export_desc_t | ze_external_memory_import_fd_t
"""Descriptors that may be chained to the descriptor of any allocation."""


class ze_memory_type_t(IntEnum):
    """Kinds of allocations."""

    ZE_MEMORY_TYPE_UNKNOWN = 0
    ZE_MEMORY_TYPE_HOST = 1
    ZE_MEMORY_TYPE_DEVICE = 2
    ZE_MEMORY_TYPE_SHARED = 3


class ze_fence_flags_t(IntFlag):
    """Initial state of a fence."""

    ZE_FENCE_FLAG_SIGNALED = 1


class ze_host_mem_alloc_flags_t(IntFlag):
    """Uses of host memory; the hints for caches (BIAS) are without effect on allocations."""

    NONE = 0
    ZE_HOST_MEM_ALLOC_FLAG_BIAS_CACHED = 1
    ZE_HOST_MEM_ALLOC_FLAG_BIAS_UNCACHED = 2
    ZE_HOST_MEM_ALLOC_FLAG_BIAS_WRITE_COMBINED = 4
    """The same as MEM_READ_ONLY for mapped memory, as in the public driver."""
    ZE_HOST_MEM_ALLOC_FLAG_BIAS_INITIAL_PLACEMENT = 8
    ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY = 16
    """The device does not write the memory; required to map host memory that is read-only."""


class ze_device_mem_alloc_flags_t(IntFlag):
    """Hints for device memory, without effect here."""

    NONE = 0
    ZE_DEVICE_MEM_ALLOC_FLAG_BIAS_CACHED = 1
    ZE_DEVICE_MEM_ALLOC_FLAG_BIAS_UNCACHED = 2
    ZE_DEVICE_MEM_ALLOC_FLAG_BIAS_INITIAL_PLACEMENT = 4


@dataclass(frozen=True, slots=True, eq=False)
class ze_external_memmap_sysmem_ext_desc_t:
    """Host memory that an allocation maps (ZE_extension_external_memmap_sysmem).

    The memory begins at a page and consists of complete pages, except for a mapped file's last one.
    """

    pSystemMemory: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ze_host_mem_alloc_desc_t:
    """Descriptor of an allocation by zeMemAllocHost."""

    flags: ze_host_mem_alloc_flags_t | int = ze_host_mem_alloc_flags_t.NONE
    pNext: ze_external_memmap_sysmem_ext_desc_t | ze_external_desc_t | None = None


@dataclass(frozen=True, slots=True)
class ze_device_mem_alloc_desc_t:
    """Descriptor of an allocation by zeMemAllocDevice."""

    flags: ze_device_mem_alloc_flags_t | int = 0
    ordinal: int = 0
    pNext: ze_external_desc_t | None = None


@dataclass(frozen=True, slots=True)
class ze_memory_allocation_properties_t:
    """Properties of an allocation; ``pNext`` has its file descriptor, if requested."""

    type: ze_memory_type_t
    id: int
    pageSize: int
    pNext: ze_external_memory_export_fd_t | None = None


def ZE_MAKE_VERSION(major: int, minor: int) -> int:
    """Pack a version in the specification's format."""
    return major << 16 | minor
