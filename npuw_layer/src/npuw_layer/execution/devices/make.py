"""The device that the options request."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import entry_points
from typing import Any, cast

from npuw_layer.backends.protocols import Compiler, Contexts, Device, DeviceFactory
from npuw_layer.errors import OptionError
from npuw_layer.execution.devices.pins import parse_pins
from npuw_layer.execution.devices.placed import Policy
from npuw_layer.execution.devices.several import SeveralDevices
from npuw_layer.options import Options
from npuw_layer.options.devices import device_names

DEVICES = "npuw_layer.devices"
COMPILERS = "npuw_layer.compilers"

_REFERENCE = "CPU"
"""Default of NPUW_ACC_DEVICE."""


def make_device(
    options: Options,
    submodels: Sequence[str],
    compiler: Compiler | None,
    contexts: Contexts | None = None,
    kind: str = "",
) -> Device:
    """Return the device, or several as one.

    Args:
        options: NPUW_DEVICES, NPUW_SUBMODEL_DEVICE, NPUW_ACC_CHECK and so on.
        submodels: names of the submodels, in order.
        compiler: used instead of the compiler that NPUW_COMPILER names.
        contexts: shared by the devices of one Core; None makes new ones.
        kind: kind of the device's submodels, if other kinds have separate devices; then even a
            single device reports placements.

    Raises:
        OptionError: an option has an unknown name.
        DeviceError: no device is available.
    """
    names = device_names(options.devices)
    pins = parse_pins(options.submodel_device, submodels, names, kind)
    compiler = compiler or make_compiler(options)

    def maker(option: str, name: str) -> Callable[[], Device]:
        factory = cast(DeviceFactory, plugin(DEVICES, option, name))
        return partial(factory, compiler, options.platform, contexts or Contexts())

    makers = {name: maker("NPUW_DEVICES", name) for name in names}
    checked = (options.acc_device or _REFERENCE) if options.acc_check else ""
    reference = maker("NPUW_ACC_DEVICE", checked) if checked and checked not in names else None
    if len(names) == 1 and not checked and not kind:
        return makers[names[0]]()
    policy = Policy(pins, options.falls_back, checked, options.acc_thresh)
    return SeveralDevices(makers, policy, reference)


def make_npu(options: Options, compiler: Compiler | None, contexts: Contexts) -> Device:
    """Return the NPU, whatever NPUW_DEVICES names; arguments as of ``make_device``."""
    factory = cast(DeviceFactory, plugin(DEVICES, "NPUW_DEVICES", "NPU"))
    return factory(compiler or make_compiler(options), options.platform, contexts)


def make_compiler(options: Options) -> Compiler:
    """Return the compiler that NPUW_COMPILER names.

    Raises:
        OptionError: no compiler has this name.
    """
    return plugin(COMPILERS, "NPUW_COMPILER", options.compiler)()


def plugin(group: str, option: str, name: str) -> Any:
    """Find a device or a compiler by its name among the entry points.

    Raises:
        OptionError: none is installed under that name.
    """
    found = {point.name: point for point in entry_points(group=group)}
    if name in found:
        return found[name].load()
    near = difflib.get_close_matches(name.upper(), found, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise OptionError(f"{option} = {name!r} is not installed; use {', '.join(sorted(found))}{hint}")
