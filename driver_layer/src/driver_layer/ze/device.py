"""Devices: discovery, properties, status and time.

Source: Level Zero core specification 1.17; properties of the public NPU driver,
docs/reference/level_zero.md#device.
"""

from __future__ import annotations

import time

from driver_layer.npu.memory import MemoryKind
from driver_layer.ze import device_types as d
from driver_layer.ze.calls import checked
from driver_layer.ze.driver import ze_device_handle_t, ze_driver_handle_t
from driver_layer.ze.queue_types import PRIORITIES
from driver_layer.ze.result import ze_result_t

DEVICE_UUID = "80d1d11e-b738-11ea-b3de-0242ac130004"
_VENDOR = 0x8086
_MAX_CONTEXTS = 64
"""Contexts of the public driver's null device."""
_COMPUTE = d.ze_command_queue_group_property_flags_t.ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE
_COPY = d.ze_command_queue_group_property_flags_t.ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY
MAX_PATTERN = 4096
"""Longest pattern of a fill, in bytes."""
QUEUE_GROUPS = (
    d.ze_command_queue_group_properties_t(_COMPUTE | _COPY, 1, MAX_PATTERN),
    d.ze_command_queue_group_properties_t(_COPY, 1, MAX_PATTERN),
)
"""The groups of queues, by ordinal. The public driver has only the first; queues of the second copy
concurrently, as the copy engines of other Level Zero devices do."""

_RW = d.ze_memory_access_cap_flags_t.ZE_MEMORY_ACCESS_CAP_FLAG_RW
_NO_ACCESS = d.ze_memory_access_cap_flags_t.NONE


@checked
def zeDeviceGet(hDriver: ze_driver_handle_t) -> list[ze_device_handle_t]:
    """Return the devices of a driver."""
    return [hDriver.device]


@checked
def zeDeviceGetSubDevices(hDevice: ze_device_handle_t) -> list[ze_device_handle_t]:
    """Return the parts of a device that are devices of their own: none."""
    return []


@checked
def zeDeviceGetProperties(hDevice: ze_device_handle_t) -> d.ze_device_properties_t:
    """Describe a device."""
    platform = hDevice.platform
    return d.ze_device_properties_t(
        type=d.ze_device_type_t.ZE_DEVICE_TYPE_VPU,
        vendorId=_VENDOR,
        deviceId=platform.device_id,
        flags=d.ze_device_property_flags_t.ZE_DEVICE_PROPERTY_FLAG_INTEGRATED,
        subdeviceId=0,
        coreClockRate=platform.dpu_mhz * 1_000_000,
        maxMemAllocSize=_memory_bytes(),
        maxHardwareContexts=_MAX_CONTEXTS,
        maxCommandQueuePriority=len(PRIORITIES) - 1,
        numThreadsPerEU=1,
        physicalEUSimdWidth=2 * platform.macs_per_cycle,
        numEUsPerSubslice=platform.tiles * platform.macs_per_cycle,
        numSubslicesPerSlice=1,
        numSlices=platform.tiles,
        timerResolution=platform.timer_khz * 1000,
        timestampValidBits=64,
        kernelTimestampValidBits=0,
        uuid=DEVICE_UUID,
        name="Intel(R) AI Boost",
    )


@checked
def zeDeviceGetComputeProperties(hDevice: ze_device_handle_t) -> d.ze_device_compute_properties_t:
    """Return the limits of kernels, all 0."""
    return d.ze_device_compute_properties_t()


@checked
def zeDeviceGetModuleProperties(hDevice: ze_device_handle_t) -> d.ze_device_module_properties_t:
    """Return the support of modules, all 0."""
    return d.ze_device_module_properties_t()


@checked
def zeDeviceGetImageProperties(hDevice: ze_device_handle_t) -> d.ze_device_image_properties_t:
    """Return the limits of images, all 0."""
    return d.ze_device_image_properties_t()


@checked
def zeDeviceGetCacheProperties(hDevice: ze_device_handle_t) -> list[d.ze_device_cache_properties_t]:
    """Describe the caches that callers can configure: none."""
    return []


@checked
def zeDeviceGetCommandQueueGroupProperties(
    hDevice: ze_device_handle_t,
) -> list[d.ze_command_queue_group_properties_t]:
    """Describe the groups of queues: one computes and copies, the other copies concurrently."""
    return list(QUEUE_GROUPS)


@checked
def zeDeviceGetMemoryProperties(
    hDevice: ze_device_handle_t,
) -> list[d.ze_device_memory_properties_t]:
    """Describe the device's only memory, DDR."""
    return [d.ze_device_memory_properties_t("DDR", _memory_bytes(), hDevice.platform.ddr_mb_per_s)]


@checked
def zeDeviceGetMemoryAccessProperties(
    hDevice: ze_device_handle_t,
) -> d.ze_device_memory_access_properties_t:
    """Return the accesses to each kind of memory; memory of malloc must be mapped first."""
    return d.ze_device_memory_access_properties_t(_RW, _RW, _RW, _NO_ACCESS, _NO_ACCESS)


@checked
def zeDeviceGetP2PProperties(
    hDevice: ze_device_handle_t, hPeerDevice: ze_device_handle_t
) -> d.ze_device_p2p_properties_t:
    """Return the accesses to another device's memory: none."""
    return d.ze_device_p2p_properties_t()


@checked
def zeDeviceCanAccessPeer(hDevice: ze_device_handle_t, hPeerDevice: ze_device_handle_t) -> bool:
    """Return whether a device can access the memory of another one: only its own."""
    return hDevice is hPeerDevice


@checked
def zeDeviceGetStatus(hDevice: ze_device_handle_t) -> ze_result_t:
    """Return whether a device works: always SUCCESS, as faults end with their inference."""
    return ze_result_t.ZE_RESULT_SUCCESS


@checked
def zeDeviceGetGlobalTimestamps(hDevice: ze_device_handle_t) -> tuple[int, int]:
    """Return the host's monotonic time in ns, and the device's in ticks of its timer."""
    device = hDevice.npu.timestamp()
    return time.monotonic_ns(), device


@checked
def zeDevicePciGetPropertiesExt(hDevice: ze_device_handle_t) -> d.ze_pci_ext_properties_t:
    """Return the PCI address that an integrated NPU has, 0000:00:0b.0, and an unknown speed."""
    return d.ze_pci_ext_properties_t(d.ze_pci_address_ext_t(0, 0, 0xB, 0))


def _memory_bytes() -> int:
    span = MemoryKind.DMA.value
    return span.end - span.begin
