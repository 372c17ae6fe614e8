"""Types of memory that other processes reach, by the specification's names.

Source: Level Zero core specification 1.17, memory and external memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


class ze_external_memory_type_flags_t(IntFlag):
    """How memory is handed to, or taken from, others.

    OPAQUE_FD and DMA_BUF are a descriptor of the same kind; STANDARD_ALLOCATION is memory of the
    host itself, which zeMemAllocHost takes (ZE_extension_external_memmap_sysmem).
    """

    NONE = 0
    ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD = 1
    ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF = 2
    ZE_EXTERNAL_MEMORY_TYPE_FLAG_STANDARD_ALLOCATION = 0x100


@dataclass(frozen=True, slots=True)
class ze_external_memory_export_desc_t:
    """Asks for memory that can be exported; chained to an allocation's descriptor."""

    flags: ze_external_memory_type_flags_t


@dataclass(frozen=True, slots=True)
class ze_external_memory_import_fd_t:
    """Asks for memory that another process exported; the descriptor stays the caller's."""

    flags: ze_external_memory_type_flags_t
    fd: int


@dataclass(frozen=True, slots=True)
class ze_external_memory_export_fd_t:
    """Asks for an allocation's descriptor, and is the answer; ``fd`` is the caller's to close."""

    flags: ze_external_memory_type_flags_t
    fd: int = -1


@dataclass(frozen=True, slots=True)
class ze_device_external_memory_properties_t:
    """How a device's memory can be exported and imported; it has no images."""

    memoryAllocationImportTypes: ze_external_memory_type_flags_t
    memoryAllocationExportTypes: ze_external_memory_type_flags_t
    imageImportTypes: ze_external_memory_type_flags_t = ze_external_memory_type_flags_t.NONE
    imageExportTypes: ze_external_memory_type_flags_t = ze_external_memory_type_flags_t.NONE


ZE_MAX_IPC_HANDLE_SIZE = 64
"""Bytes of an IPC handle."""


class ze_ipc_memory_flags_t(IntFlag):
    """How memory of another process is to be cached; this device has no such choice."""

    NONE = 0
    ZE_IPC_MEMORY_FLAG_BIAS_CACHED = 1
    ZE_IPC_MEMORY_FLAG_BIAS_UNCACHED = 2


@dataclass(frozen=True, slots=True)
class ze_ipc_mem_handle_t:
    """Names memory to another process: ZE_MAX_IPC_HANDLE_SIZE bytes, to be passed on as they are.

    The first four are the descriptor's number, as those of other drivers are; see ``ze.ipc``.
    """

    data: bytes


ze_external_desc_t = ze_external_memory_export_desc_t | ze_external_memory_import_fd_t
"""What may be chained to any allocation's descriptor."""
