"""Readers of a model folder's JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from genai_layer.errors import ModelError
from genai_layer.files import is_file


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; a missing file is an empty object.

    Raises:
        ModelError: the file is not a JSON object.
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
    """Read positive integers from an object; missing ones have their default.

    Raises:
        ModelError: the file is not a JSON object, or a value is not an integer from 1 to 2**24 - 1.
    """
    found = read_object(path)
    counts = {name: found.get(name, default) for name, default in defaults.items()}
    for name, value in counts.items():
        if type(value) is not int or not 0 < value < 1 << 24:
            raise ModelError(f"{path}: {name} = {value!r}: must be an integer from 1 to 2**24 - 1")
    return counts
