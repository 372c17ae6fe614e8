"""The device that remote tensors are shared with, behind whatever else a model runs on."""

from __future__ import annotations

from npuw_layer.backends.protocols import Device, ImportsMemory, ability


def npu_of(device: Device) -> ImportsMemory | None:
    """Return the device whose memory programs are bound to; None if it imports no memory."""
    return ability(device, ImportsMemory)
