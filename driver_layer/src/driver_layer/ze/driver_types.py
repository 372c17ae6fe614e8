"""Properties of drivers, with the specification's names.

Source: Level Zero core specification 1.17, driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


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
