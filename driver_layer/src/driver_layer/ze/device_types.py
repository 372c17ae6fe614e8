"""Properties of drivers and devices, with the specification's names.

Source: Level Zero core specification 1.17, driver, device and PCI properties.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag


class ze_init_driver_type_flags_t(IntFlag):
    """Kinds of drivers to initialise."""

    ZE_INIT_DRIVER_TYPE_FLAG_GPU = 1
    ZE_INIT_DRIVER_TYPE_FLAG_NPU = 2


class ze_ipc_property_flags_t(IntFlag):
    """Objects that a driver shares with other processes."""

    ZE_IPC_PROPERTY_FLAG_MEMORY = 1
    ZE_IPC_PROPERTY_FLAG_EVENT_POOL = 2


@dataclass(frozen=True, slots=True)
class ze_driver_properties_t:
    """Properties of a driver."""

    uuid: str
    driverVersion: int
    """Time of the build in seconds since 1970, as in the public Linux driver."""


@dataclass(frozen=True, slots=True)
class ze_driver_ipc_properties_t:
    """Objects that a driver shares with other processes."""

    flags: ze_ipc_property_flags_t


@dataclass(frozen=True, slots=True)
class ze_driver_extension_properties_t:
    """Properties of an extension of the driver."""

    name: str
    version: int


class ze_device_type_t(IntEnum):
    """Kinds of devices."""

    ZE_DEVICE_TYPE_VPU = 5


class ze_device_property_flags_t(IntFlag):
    """Flags of a device."""

    ZE_DEVICE_PROPERTY_FLAG_INTEGRATED = 1


class ze_command_queue_group_property_flags_t(IntFlag):
    """Capabilities of the queues of a group."""

    ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE = 1
    ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY = 2


class ze_memory_access_cap_flags_t(IntFlag):
    """Accesses of a device to a kind of memory."""

    NONE = 0
    ZE_MEMORY_ACCESS_CAP_FLAG_RW = 1
    ZE_MEMORY_ACCESS_CAP_FLAG_ATOMIC = 2
    ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT = 4
    ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT_ATOMIC = 8


@dataclass(frozen=True, slots=True)
class ze_device_properties_t:
    """Properties of a device; clock in Hz, timer in ticks per second, memory in bytes.

    ``timerResolution`` has the unit of ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2; the unit of the
    older ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES is ns per tick.
    """

    type: ze_device_type_t
    vendorId: int
    deviceId: int
    flags: ze_device_property_flags_t
    subdeviceId: int
    coreClockRate: int
    maxMemAllocSize: int
    maxHardwareContexts: int
    maxCommandQueuePriority: int
    numThreadsPerEU: int
    physicalEUSimdWidth: int
    numEUsPerSubslice: int
    numSubslicesPerSlice: int
    numSlices: int
    timerResolution: int
    timestampValidBits: int
    kernelTimestampValidBits: int
    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class ze_device_compute_properties_t:
    """Limits of kernels; all are 0, as the device runs graphs only."""

    maxTotalGroupSize: int = 0
    maxGroupSizeX: int = 0
    maxGroupSizeY: int = 0
    maxGroupSizeZ: int = 0
    maxGroupCountX: int = 0
    maxGroupCountY: int = 0
    maxGroupCountZ: int = 0
    maxSharedLocalMemory: int = 0
    numSubGroupSizes: int = 0
    subGroupSizes: tuple[int, ...] = (0,) * 8


@dataclass(frozen=True, slots=True)
class ze_device_module_properties_t:
    """Support of modules; all fields are 0, as the device has no modules."""

    spirvVersionSupported: int = 0
    flags: int = 0
    fp16flags: int = 0
    fp32flags: int = 0
    fp64flags: int = 0
    maxArgumentsSize: int = 0
    printfBufferSize: int = 0


@dataclass(frozen=True, slots=True)
class ze_device_image_properties_t:
    """Limits of images; all are 0, as the device has no images."""

    maxImageDims1D: int = 0
    maxImageDims2D: int = 0
    maxImageDims3D: int = 0
    maxImageBufferSize: int = 0
    maxImageArraySlices: int = 0
    maxSamplers: int = 0
    maxReadImageArgs: int = 0
    maxWriteImageArgs: int = 0


@dataclass(frozen=True, slots=True)
class ze_device_cache_properties_t:
    """Properties of a cache."""

    flags: int
    cacheSize: int


@dataclass(frozen=True, slots=True)
class ze_device_p2p_properties_t:
    """Accesses to another device; the flags are 0, as each device has its own contexts."""

    flags: int = 0


@dataclass(frozen=True, slots=True)
class ze_device_memory_access_properties_t:
    """Accesses of a device to memory of each kind."""

    hostAllocCapabilities: ze_memory_access_cap_flags_t
    deviceAllocCapabilities: ze_memory_access_cap_flags_t
    sharedSingleDeviceAllocCapabilities: ze_memory_access_cap_flags_t
    sharedCrossDeviceAllocCapabilities: ze_memory_access_cap_flags_t
    sharedSystemAllocCapabilities: ze_memory_access_cap_flags_t


@dataclass(frozen=True, slots=True)
class ze_command_queue_group_properties_t:
    """Properties of a group of queues; the longest pattern of a fill is in bytes."""

    flags: ze_command_queue_group_property_flags_t
    numQueues: int
    maxMemoryFillPatternSize: int


@dataclass(frozen=True, slots=True)
class ze_device_memory_properties_t:
    """Properties of a device's memory; size in bytes, bandwidth in MB/s.

    ``maxBandwidth`` is not a field of the specification's structure, which has clock and width.
    """

    name: str
    totalSize: int
    maxBandwidth: int
    flags: int = 0
    maxClockRate: int = 0
    maxBusWidth: int = 0


@dataclass(frozen=True, slots=True)
class ze_pci_address_ext_t:
    """Address of a PCI device."""

    domain: int
    bus: int
    device: int
    function: int


@dataclass(frozen=True, slots=True)
class ze_pci_speed_ext_t:
    """Speed of a PCI device; 0 if unknown."""

    genVersion: int = 0
    width: int = 0
    maxBandwidth: int = 0


@dataclass(frozen=True, slots=True)
class ze_pci_ext_properties_t:
    """PCI properties of a device."""

    address: ze_pci_address_ext_t
    maxSpeed: ze_pci_speed_ext_t = ze_pci_speed_ext_t()
