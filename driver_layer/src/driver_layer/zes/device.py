"""Initialisation of sysman; drivers and devices, whose handles are those of the core interface.

Source: Level Zero sysman specification 1.17; texts of the public NPU driver,
docs/reference/level_zero.md#sysman.
"""

from __future__ import annotations

from dataclasses import dataclass

from driver_layer import ze
from driver_layer.ze.calls import checked

_DRIVER = "npu-linux-driver"
"""Name of the public driver, by which applications recognize the driver of an NPU."""


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
