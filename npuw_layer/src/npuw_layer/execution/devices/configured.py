"""Options passed to devices before programs are loaded: PERF_COUNT, and a model's urgency."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from npuw_layer.backends.protocols import (
    Device,
    ProfilesPrograms,
    TakesTurns,
    Urgency,
    abilities,
)
from npuw_layer.errors import OptionError
from npuw_layer.options import Options

D = TypeVar("D", bound=Device)


def configured(device: D, options: Options) -> D:
    """Pass options to a device, and return the device.

    Raises:
        OptionError: the options set an urgency, and the device does not schedule programs.
    """
    configure([device], options)
    return device


def configure(devices: Iterable[Device], options: Options) -> None:
    """Pass options to all devices of a model; errors as ``configured``, if none supports them."""
    every = [*devices]
    if options.perf_count:
        for device in abilities(every, ProfilesPrograms):
            device.profile_programs()
    urgency = Urgency(options.model_priority, options.workload_type)
    able = any([device.set_urgency(urgency) for device in abilities(every, TakesTurns)])
    if urgency != Urgency() and not able:
        raise OptionError(
            f"MODEL_PRIORITY, WORKLOAD_TYPE: NPUW_DEVICES = {options.devices} runs programs in "
            "order of submission; leave them out, or use the NPU"
        )
