"""Runtimes by device, found as entry points; this layer names none of their classes."""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec

from genai_layer.errors import PropertyError
from genai_layer.runtime import Core

GROUP = "genai_layer.runtimes"
"""Entry points: the name is the device, the value a callable that returns a Core."""

_EXTRAS = {"CPU": ("openvino", "openvino"), "NPU": ("npuw_layer", "npu")}
"""Extras by device: the package that the device needs, and the extra that installs it."""


def load_core(device: str) -> Core:
    """Return the runtime of a device.

    Raises:
        PropertyError: no installed package provides the device.
        GenAIError: the runtime cannot be loaded.
    """
    found = {point.name: point for point in entry_points(group=GROUP)}
    package, extra = _EXTRAS.get(device, ("", ""))
    if package and not _is_installed(package):
        raise PropertyError(
            f"device {device!r}: the package {package} is not installed; "
            f"pip install 'genai_layer[{extra}]'"
        )
    if device not in found:
        missing = {name for name, (package, _) in _EXTRAS.items() if not _is_installed(package)}
        known = ", ".join(sorted(found.keys() - missing)) or "none; pip install 'genai_layer[npu]'"
        raise PropertyError(f"device {device!r}: no runtime is installed; available: {known}")
    try:
        make = found[device].load()
    except ImportError as error:
        raise PropertyError(f"device {device}: its runtime cannot be imported: {error}") from error
    return make()


def _is_installed(package: str) -> bool:
    return find_spec(package) is not None
