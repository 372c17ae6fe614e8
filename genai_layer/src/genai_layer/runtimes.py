"""Finds the runtime for a device by entry point; nothing here knows any of them."""

from __future__ import annotations

from importlib.metadata import entry_points

from genai_layer.errors import PropertyError
from genai_layer.runtime import Core

GROUP = "genai_layer.runtimes"
"""Entry points: the name is the device, the value a callable that gives a Core."""


def load_core(device: str) -> Core:
    """Give the runtime of a device.

    Raises:
        PropertyError: no installed package offers the device.
        GenAIError: the runtime cannot be loaded.
    """
    found = {point.name: point for point in entry_points(group=GROUP)}
    if device not in found:
        known = ", ".join(sorted(found)) or "none; install npuw_layer or openvino"
        raise PropertyError(f"no runtime for device {device!r}; available: {known}")
    try:
        make = found[device].load()
    except ImportError as error:
        raise PropertyError(f"the runtime for {device} is not installed: {error}") from error
    return make()
