"""Activity of the engines.

Source: Level Zero sysman specification 1.17; docs/reference/level_zero.md#sysman.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from driver_layer.ze import ze_device_handle_t
from driver_layer.ze.calls import checked
from driver_layer.ze.handles import Handle


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

    def __init__(self, device: ze_device_handle_t) -> None:
        super().__init__()
        self.device = device


@checked
def zesDeviceEnumEngineGroups(hDevice: ze_device_handle_t) -> list[zes_engine_handle_t]:
    """Return the groups of engines: one, the compute engines together."""
    return [_engine_of(hDevice)]


@cache
def _engine_of(device: ze_device_handle_t) -> zes_engine_handle_t:
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
