"""Which devices a model runs on now (EXECUTION_DEVICES)."""

from __future__ import annotations

from collections.abc import Mapping

from npuw_layer.backends.protocols import LoadedModel
from npuw_layer.execution.devices.pins import kind_of
from npuw_layer.execution.devices.report import placements
from npuw_layer.options import Options
from npuw_layer.options.devices import device_names
from npuw_layer.options.stages import KINDS


def execution_devices(models: Mapping[str, LoadedModel], options: Options) -> list[str]:
    """Give the devices that run static models, in the order of NPUW_DEVICES; others after them.

    Args:
        models: all of them, by name; what they are made of may run on several devices.
        options: NPUW_DEVICES among them, of all or of stages.
    """
    by_kind: dict[str, set[str]] = {}
    for name, model in models.items():
        used = by_kind.setdefault(kind_of(name), set())
        used |= {placement.device for placement in placements(model)}
    named = [*device_names(options.devices)]
    everywhere: set[str] = set()
    for kind, used in by_kind.items():
        own = next((options.of_stage(each) for each in KINDS if each == kind), options)
        named += device_names(own.devices)
        everywhere |= used or {*device_names(own.devices)}
    in_order = [name for name in dict.fromkeys(named) if name in everywhere]
    return [*in_order, *sorted(everywhere.difference(in_order))]
