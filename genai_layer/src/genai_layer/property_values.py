"""Values of properties as text and numbers, from the objects that scripts pass.

Objects of the package openvino are recognised by their interface, without importing it.

Source: docs/reference/genai.md#property-values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

_LOG_LEVELS = {"NO": "LOG_NONE", "ERR": "LOG_ERROR"}


def plain(value: Any) -> Any:
    """Return a value as OpenVINO prints it; values of other types are returned unchanged.

    Args:
        value: text, a number or a dictionary; or numpy's number, a path, a Python enumeration, or
            OpenVINO's element type (``openvino.Type``), enumeration or ``OVAny``.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] (any mapping)
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    if isinstance(value, os.PathLike):
        return os.fspath(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] (any path)
    return _openvino(item(value))


def item(value: Any) -> Any:
    """Return a number of numpy as Python's; other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value  # pyright: ignore[reportUnknownVariableType] (any value)


def _openvino(value: Any) -> Any:
    """Return the printed form of OpenVINO's objects; other objects unchanged."""
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType] (any value)
    if kind.__name__ == "OVAny":
        return plain(value.value)
    if hasattr(kind, "__members__"):  # OpenVINO's enumerations are not Python's
        name = str(value.name)
        return _LOG_LEVELS.get(name, f"LOG_{name}") if kind.__name__ == "Level" else name
    return value.to_string() if callable(getattr(kind, "to_string", None)) else value
