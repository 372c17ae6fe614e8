"""State of the device's memory.

Source: Level Zero sysman specification 1.17. The public NPU driver does not have these functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from driver_layer import ze
from driver_layer.ze.calls import checked
from driver_layer.ze.handles import Handle

_UNKNOWN = -1


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
