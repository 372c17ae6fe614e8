"""PCI properties of devices.

Source: Level Zero sysman specification 1.17. The public NPU driver has these properties in the core
interface only, zeDevicePciGetPropertiesExt.
"""

from __future__ import annotations

from dataclasses import dataclass

from driver_layer import ze
from driver_layer.ze.calls import checked

_UNKNOWN = -1


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
