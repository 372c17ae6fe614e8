"""PERF_COUNT: devices whose programs tell what they take."""

from __future__ import annotations

from typing import TypeVar

from npuw_layer.options import Options
from npuw_layer.ports import Device, ProfilesPrograms

D = TypeVar("D", bound=Device)


def profiled(device: D, options: Options) -> D:
    """Let a device's programs tell their times, if that is asked for and the device can."""
    if options.perf_count and isinstance(device, ProfilesPrograms):
        device.profile_programs()
    return device
