"""Types for memory that is shared with other processes, with the specification's names.

Source: Level Zero core specification 1.17, memory and external memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


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
