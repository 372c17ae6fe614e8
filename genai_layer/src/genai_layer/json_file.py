"""Reads what a folder says in JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from genai_layer.errors import ModelError
from genai_layer.files import is_file


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if there is no such file.

    Raises:
        ModelError: it is no JSON object.
    """
    if not is_file(path):
        return {}
    try:
        found: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ModelError(f"{path}: not a JSON object")
    return cast(dict[str, Any], found)


def read_counts(path: Path, defaults: dict[str, int]) -> dict[str, int]:
    """Read some numbers of things from an object; what it does not say is as given.

    Raises:
        ModelError: it is no JSON object, or one is no sensible number.
    """
    found = read_object(path)
    counts = {name: found.get(name, default) for name, default in defaults.items()}
    for name, value in counts.items():
        if type(value) is not int or not 0 < value < 1 << 24:
            raise ModelError(f"{path}: {name} is {value!r}, not a number of things")
    return counts
