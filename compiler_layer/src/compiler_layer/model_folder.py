"""Files of a Hugging Face folder: its checkpoint, and JSON objects.

Importing this module imports no graphs, so that a warm start can digest a model's files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from compiler_layer.errors import BadModel

WHOLE = "model.safetensors"
"""File of a checkpoint that is not sharded."""

INDEX = "model.safetensors.index.json"
"""Index of a sharded checkpoint."""

_SUFFIX = ".safetensors"

_MAX_INDEX_BYTES = 100 << 20


def checkpoint_files(folder: Path) -> list[Path]:
    """Return the files of a folder's checkpoint; no other file of the folder counts.

    A checkpoint is ``model.safetensors``, else ``model.safetensors.index.json`` and its shards.

    Raises:
        BadModel: neither exists, or the index is damaged.

    Source: transformers' from_pretrained, which has this precedence.
    """
    whole, index = folder / WHOLE, folder / INDEX
    if whole.is_file() or (whole.exists() and not index.exists()):
        return [whole]
    if index.exists():
        return [index, *(folder / name for name in _shards(index))]
    raise BadModel(folder, _missing(folder))


def _missing(folder: Path) -> str:
    """Return the problem and remedy of a folder without a checkpoint."""
    others = sorted(path.name for path in folder.glob(f"*{_SUFFIX}"))
    if len(others) == 1:
        return f"has no {WHOLE}; if {others[0]} has the model's weights, rename it to {WHOLE}"
    if others:
        return f"has no {WHOLE} and no {INDEX} that lists its shards, of {', '.join(others)}"
    return f"has no {WHOLE}; convert the weights to safetensors"


def _shards(index: Path) -> list[str]:
    weight_map = read_object(index, _MAX_INDEX_BYTES).get("weight_map")
    if not isinstance(weight_map, dict):
        raise BadModel(index, "is not an index of shards: weight_map is not an object")
    names: list[Any] = list(cast(dict[str, Any], weight_map).values())
    if not all(isinstance(name, str) and name and "\0" not in name for name in names):
        raise BadModel(index, "is not an index of shards: a shard is not a file name")
    if any(Path(name).name != name for name in names):
        raise BadModel(
            index, "a shard is not beside it; move all shards to the folder of the index"
        )
    return sorted(set(names))


def read_object(path: Path, most_bytes: int) -> dict[str, Any]:
    """Read the JSON object of a file, in UTF-8, -16 or -32, with or without a byte order mark.

    Raises:
        BadModel: the file is missing or larger than ``most_bytes``, or holds no JSON object.
    """
    try:
        if path.stat().st_size > most_bytes or not path.is_file():
            raise BadModel(path, f"is not a file of at most {most_bytes} bytes")
        values: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise BadModel(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise BadModel(path, f"is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise BadModel(path, "is not a JSON object")
    return cast(dict[str, Any], values)
