"""The NPU that remote tensors are shared with, behind whatever else a model runs on."""

from __future__ import annotations

from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.protocols import Device, UsesMemoryOf


def npu_of(device: Device) -> LevelZeroDevice | None:
    """Give the NPU whose memory a device's programs are bound to; None if it is no NPU's."""
    while isinstance(device, UsesMemoryOf):
        device = device.memory_device
    return device if isinstance(device, LevelZeroDevice) else None
