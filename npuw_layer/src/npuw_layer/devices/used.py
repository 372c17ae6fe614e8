"""Which devices a model runs on now (EXECUTION_DEVICES)."""

from __future__ import annotations

from npuw_layer.devices.make import device_names
from npuw_layer.devices.several import SeveralDevices
from npuw_layer.options import Options
from npuw_layer.ports import Device


def execution_devices(device: Device, options: Options) -> list[str]:
    """Give the devices that run submodels, in the order of NPUW_DEVICES; others after them.

    Args:
        device: what was made of the options.
        options: NPUW_DEVICES among them.
    """
    names = device_names(options.devices)
    if not isinstance(device, SeveralDevices):
        return [*names]
    used = {placement.device for placement in device.placements}
    return [*(name for name in names if name in used), *sorted(used.difference(names))]
