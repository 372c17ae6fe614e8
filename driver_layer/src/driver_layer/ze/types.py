"""Enumerations and properties of Level Zero that this driver uses, with the specification's names.

Source: Level Zero core specification 1.17.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag, auto

import numpy as np
import numpy.typing as npt

from driver_layer.ze.external_types import ze_external_desc_t, ze_external_memory_export_fd_t


class ze_device_type_t(IntEnum):
    """Kinds of devices."""

    ZE_DEVICE_TYPE_VPU = 5


class ze_memory_type_t(IntEnum):
    """Kinds of allocations."""

    ZE_MEMORY_TYPE_UNKNOWN = 0
    ZE_MEMORY_TYPE_HOST = 1
    ZE_MEMORY_TYPE_DEVICE = 2
    ZE_MEMORY_TYPE_SHARED = 3


class ze_command_queue_group_property_flags_t(IntFlag):
    """Capabilities of the queues of a group."""

    ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE = 1
    ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY = 2


class ze_fence_flags_t(IntFlag):
    """Initial state of a fence."""

    ZE_FENCE_FLAG_SIGNALED = 1


class ze_host_mem_alloc_flags_t(IntFlag):
    """Uses of host memory."""

    NONE = 0
    ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY = auto()
    """The device does not write the memory; required to map host memory that is read-only. (The
    name is the specification's, the number is not.)"""


@dataclass(frozen=True, slots=True, eq=False)
class ze_external_memmap_sysmem_ext_desc_t:
    """Host memory that an allocation maps (ZE_extension_external_memmap_sysmem).

    The memory begins at a page and consists of complete pages, except for a mapped file's last one.
    """

    pSystemMemory: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ze_host_mem_alloc_desc_t:
    """Descriptor of an allocation by zeMemAllocHost."""

    flags: ze_host_mem_alloc_flags_t = ze_host_mem_alloc_flags_t.NONE
    pNext: ze_external_memmap_sysmem_ext_desc_t | ze_external_desc_t | None = None


@dataclass(frozen=True, slots=True)
class ze_device_mem_alloc_desc_t:
    """Descriptor of an allocation by zeMemAllocDevice."""

    flags: int = 0
    ordinal: int = 0
    pNext: ze_external_desc_t | None = None


@dataclass(frozen=True, slots=True)
class ze_driver_properties_t:
    """Properties of a driver."""

    uuid: str
    driverVersion: int


@dataclass(frozen=True, slots=True)
class ze_driver_extension_properties_t:
    """Properties of an extension of the driver."""

    name: str
    version: int


@dataclass(frozen=True, slots=True)
class ze_device_properties_t:
    """Properties of a device; clock in MHz, timer in ticks per second, memory in bytes."""

    type: ze_device_type_t
    vendorId: int
    deviceId: int
    coreClockRate: int
    maxMemAllocSize: int
    numSlices: int
    numSubslicesPerSlice: int
    numEUsPerSubslice: int
    timerResolution: int
    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class ze_command_queue_group_properties_t:
    """Properties of a group of queues."""

    flags: int
    numQueues: int


@dataclass(frozen=True, slots=True)
class ze_device_memory_properties_t:
    """Properties of a device's memory; size in bytes, bandwidth in MB/s."""

    name: str
    totalSize: int
    maxBandwidth: int


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
