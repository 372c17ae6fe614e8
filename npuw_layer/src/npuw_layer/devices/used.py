"""Which devices a model runs on now (EXECUTION_DEVICES)."""

from __future__ import annotations

from collections.abc import Iterable

from npuw_layer.devices.make import device_names
from npuw_layer.devices.report import placements
from npuw_layer.options import Options
from npuw_layer.ports import LoadedModel


def execution_devices(models: Iterable[LoadedModel], options: Options) -> list[str]:
    """Give the devices that run static models, in the order of NPUW_DEVICES; others after them.

    Args:
        models: all of them; what they are made of may run on several devices.
        options: NPUW_DEVICES among them.
    """
    names = device_names(options.devices)
    used = {placement.device for model in models for placement in placements(model)}
    if not used:
        return [*names]
    return [*(name for name in names if name in used), *sorted(used.difference(names))]
