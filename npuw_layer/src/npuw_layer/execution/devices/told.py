"""What options tell devices before anything is loaded: PERF_COUNT, and how urgent a model is."""

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


def told(device: D, options: Options) -> D:
    """Tell a device; give it back.

    Raises:
        OptionError: programs are to be more or less urgent than others, and it has no others.
    """
    tell([device], options)
    return device


def tell(devices: Iterable[Device], options: Options) -> None:
    """Tell all devices of a model; errors as ``told``, if none of them can do it."""
    every = [*devices]
    if options.perf_count:
        for device in abilities(every, ProfilesPrograms):
            device.profile_programs()
    urgency = Urgency(options.model_priority, options.workload_type)
    able = any([device.set_urgency(urgency) for device in abilities(every, TakesTurns)])
    if urgency != Urgency() and not able:
        raise OptionError(
            f"MODEL_PRIORITY and WORKLOAD_TYPE: NPUW_DEVICES = {options.devices} runs programs as "
            "they come; leave them out, or use the NPU"
        )
