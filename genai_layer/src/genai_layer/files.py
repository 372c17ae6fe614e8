"""Kinds of files at paths from users, where even the query may fail; a folder's texts and JSON."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from genai_layer.errors import GenAIError, ModelError


def is_file(path: Path, refused: Callable[[str], GenAIError] = ModelError) -> bool:
    """Return whether a path is a regular file.

    Args:
        path: the path to query.
        refused: creates the error from a message.

    Raises:
        GenAIError: the error of ``refused``: the folder is not accessible, the name is too long, …
            (``Path.is_file`` raises an OSError).
    """
    return stat.S_ISREG(_mode(path, refused))


def is_folder(path: Path, refused: Callable[[str], GenAIError] = ModelError) -> bool:
    """Return whether a path is a folder; the errors are those of ``is_file``."""
    return stat.S_ISDIR(_mode(path, refused))


def _mode(path: Path, refused: Callable[[str], GenAIError]) -> int:
    """Return the mode of a path; 0 if nothing exists there."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise refused(f"{path}: {error.strerror or error}") from None
    except UnicodeEncodeError as error:
        raise refused(unencodable(path, error)) from None
    except ValueError:  # the name is impossible, e.g. it has a null character
        return 0


def unencodable(path: Path, error: UnicodeEncodeError) -> str:
    """Return the message for a path with a character that names of files cannot have."""
    character = error.object[error.start]
    remedy = "set LC_ALL=C.UTF-8 or PYTHONUTF8=1, or pass bytes"
    if "\ud800" <= character <= "\udfff":
        remedy = "pass text in UTF-8, or bytes"
    return f"{str(path)!a}: names of files in {error.encoding} lack {character!a}; {remedy}"


def read_text(path: Path) -> str:
    """Read a text in UTF-8, without its byte-order mark.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not UTF-8.
    """
    return path.read_text(encoding="utf-8-sig")


def whole(value: object) -> object:
    """Return integers that a JSON file writes as floats (2.0) as integers, also those of a list.

    Source: measured; openvino_genai reads such numbers, and cuts others (2.5), which stay here.
    """
    if isinstance(value, list):
        return [whole(one) for one in cast(list[object], value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; a missing file is an empty object.

    Raises:
        ModelError: the file is not a JSON object.
    """
    if not is_file(path):
        return {}
    try:
        found: object = json.loads(read_text(path))
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
    counts: dict[str, int] = {}
    for name, default in defaults.items():
        value = whole(found.get(name, default))
        if type(value) is not int or not 0 < value < 1 << 24:
            raise ModelError(f"{path}: {name} = {value!r}: must be an integer from 1 to 2**24 - 1")
        counts[name] = value
    return counts
