"""System management: devices, PCI, activity of the engines, state of the memory.

Handles of drivers and devices are those of the core interface.

Source: Level Zero sysman specification 1.17; texts of the public NPU driver,
docs/reference/level_zero.md#sysman. The public driver has no functions of memory, and PCI
properties in the core interface only, zeDevicePciGetPropertiesExt.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from driver_layer import ze
from driver_layer.ze.calls import Handle, checked

_DRIVER = "npu-linux-driver"
"""Name of the public driver, by which applications recognize the driver of an NPU."""
_UNKNOWN = -1
"""Number that the device does not have."""


@dataclass(frozen=True, slots=True)
class zes_device_properties_t:
    """Properties of a device; texts that the device does not have are "unknown"."""

    core: ze.ze_device_properties_t
    numSubdevices: int
    serialNumber: str
    boardNumber: str
    brandName: str
    modelName: str
    vendorName: str
    driverVersion: str


@checked
def zesInit(flags: int = 0) -> None:
    """Initialise sysman; as zeInit."""
    ze.zeInit(flags)


@checked
def zesDriverGet() -> list[ze.ze_driver_handle_t]:
    """Return all drivers.

    Raises:
        ZeError: UNINITIALIZED: neither zesInit nor zeInit was called.
    """
    return ze.zeDriverGet()


@checked
def zesDeviceGet(hDriver: ze.ze_driver_handle_t) -> list[ze.ze_device_handle_t]:
    """Return the devices of a driver."""
    return ze.zeDeviceGet(hDriver)


@checked
def zesDeviceGetProperties(hDevice: ze.ze_device_handle_t) -> zes_device_properties_t:
    """Describe a device."""
    return zes_device_properties_t(
        core=ze.zeDeviceGetProperties(hDevice),
        numSubdevices=0,
        serialNumber="unknown",
        boardNumber="unknown",
        brandName="NPU",
        modelName=hDevice.platform.name,
        vendorName="INTEL",
        driverVersion=f"{_DRIVER}-{ze.zeDriverGetProperties(hDevice.driver).driverVersion}",
    )


@dataclass(frozen=True, slots=True)
class zes_pci_address_t:
    """Address of a PCI device."""

    domain: int
    bus: int
    device: int
    function: int


@dataclass(frozen=True, slots=True)
class zes_pci_speed_t:
    """Speed of a PCI device; -1 is unknown."""

    gen: int = _UNKNOWN
    width: int = _UNKNOWN
    maxBandwidth: int = _UNKNOWN


@dataclass(frozen=True, slots=True)
class zes_pci_properties_t:
    """PCI properties of a device, which has no PCI counters."""

    address: zes_pci_address_t
    maxSpeed: zes_pci_speed_t = zes_pci_speed_t()
    haveBandwidthCounters: bool = False
    havePacketCounters: bool = False
    haveReplayCounters: bool = False


@checked
def zesDevicePciGetProperties(hDevice: ze.ze_device_handle_t) -> zes_pci_properties_t:
    """Describe a PCI device; as zeDevicePciGetPropertiesExt."""
    at = ze.zeDevicePciGetPropertiesExt(hDevice).address
    return zes_pci_properties_t(zes_pci_address_t(at.domain, at.bus, at.device, at.function))


class zes_engine_group_t(IntEnum):
    """Groups of engines."""

    ZES_ENGINE_GROUP_COMPUTE_ALL = 1


@dataclass(frozen=True, slots=True)
class zes_engine_properties_t:
    """Properties of a group of engines."""

    type: zes_engine_group_t
    onSubdevice: bool
    subdeviceId: int


@dataclass(frozen=True, slots=True)
class zes_engine_stats_t:
    """Active time and the time of its reading, in µs; a utilisation is the ratio of differences."""

    activeTime: int
    timestamp: int


class zes_engine_handle_t(Handle):
    """The compute engines of a device."""

    def __init__(self, device: ze.ze_device_handle_t) -> None:
        super().__init__()
        self.device = device


@checked
def zesDeviceEnumEngineGroups(hDevice: ze.ze_device_handle_t) -> list[zes_engine_handle_t]:
    """Return the groups of engines: one, the compute engines together."""
    return [_engine_of(hDevice)]


@cache
def _engine_of(device: ze.ze_device_handle_t) -> zes_engine_handle_t:
    return zes_engine_handle_t(device)


@checked
def zesEngineGetProperties(hEngine: zes_engine_handle_t) -> zes_engine_properties_t:
    """Describe a group of engines."""
    group = zes_engine_group_t.ZES_ENGINE_GROUP_COMPUTE_ALL
    return zes_engine_properties_t(group, onSubdevice=False, subdeviceId=0)


@checked
def zesEngineGetActivity(hEngine: zes_engine_handle_t) -> zes_engine_stats_t:
    """Return the time in which inferences ran since the device was created."""
    active = hEngine.device.npu.counters.active_until_now()
    return zes_engine_stats_t(active // 1000, time.monotonic_ns() // 1000)


class zes_mem_type_t(IntEnum):
    """Kinds of memory."""

    ZES_MEM_TYPE_DDR = 1


class zes_mem_loc_t(IntEnum):
    """Places of memory."""

    ZES_MEM_LOC_SYSTEM = 0


class zes_mem_health_t(IntEnum):
    """Health of memory."""

    ZES_MEM_HEALTH_OK = 1


@dataclass(frozen=True, slots=True)
class zes_mem_properties_t:
    """Properties of a memory module; size in bytes, -1 is unknown."""

    type: zes_mem_type_t
    onSubdevice: bool
    subdeviceId: int
    location: zes_mem_loc_t
    physicalSize: int
    busWidth: int = _UNKNOWN
    numChannels: int = _UNKNOWN


@dataclass(frozen=True, slots=True)
class zes_mem_state_t:
    """State of a memory module, in bytes; allocations of this process count."""

    health: zes_mem_health_t
    free: int
    size: int


class zes_mem_handle_t(Handle):
    """The memory of a device."""

    def __init__(self, device: ze.ze_device_handle_t) -> None:
        super().__init__()
        self.device = device


@checked
def zesDeviceEnumMemoryModules(hDevice: ze.ze_device_handle_t) -> list[zes_mem_handle_t]:
    """Return the memory modules: one."""
    return [_memory_of(hDevice)]


@cache
def _memory_of(device: ze.ze_device_handle_t) -> zes_mem_handle_t:
    return zes_mem_handle_t(device)


@checked
def zesMemoryGetProperties(hMemory: zes_mem_handle_t) -> zes_mem_properties_t:
    """Describe a memory module: DDR of the system, as the device is integrated."""
    return zes_mem_properties_t(
        zes_mem_type_t.ZES_MEM_TYPE_DDR,
        onSubdevice=False,
        subdeviceId=0,
        location=zes_mem_loc_t.ZES_MEM_LOC_SYSTEM,
        physicalSize=_size(hMemory),
    )


@checked
def zesMemoryGetState(hMemory: zes_mem_handle_t) -> zes_mem_state_t:
    """Return the free part of a memory module."""
    used = sum(space.allocated_bytes for space in tuple(hMemory.device.spaces))
    size = _size(hMemory)
    return zes_mem_state_t(zes_mem_health_t.ZES_MEM_HEALTH_OK, max(size - used, 0), size)


def _size(memory: zes_mem_handle_t) -> int:
    (only,) = ze.zeDeviceGetMemoryProperties(memory.device)
    return only.totalSize
