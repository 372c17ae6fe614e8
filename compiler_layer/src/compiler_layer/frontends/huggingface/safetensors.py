"""Locations of the tensors in safetensors files; only headers are read.

Source: the safetensors format: u64 header length, JSON header, data; offsets are relative to the
data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from compiler_layer.dialects.ov.types import MAX_RANK, Shape
from compiler_layer.elements import NUMPY
from compiler_layer.errors import BadModel
from compiler_layer.files import FileView
from compiler_layer.model_folder import INDEX, checkpoint_files

_ELEMENTS = {
    "F64": "f64",
    "F32": "f32",
    "F16": "f16",
    "BF16": "bf16",
    "I64": "i64",
    "I32": "i32",
    "I16": "i16",
    "I8": "i8",
    "U8": "u8",
    "BOOL": "boolean",
}

_MAX_HEADER_BYTES = 100 << 20


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Tensor in a file."""

    element: str
    shape: Shape
    view: FileView


def read_folder_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Find the tensors of a folder's checkpoint, sharded or not.

    Raises:
        BadModel: no file exists, or one is damaged.
    """
    tensors: dict[str, StoredTensor] = {}
    for file in checkpoint_files(folder):
        if file.name != INDEX:
            tensors |= read_file_tensors(file)
    return tensors


def read_file_tensors(path: Path) -> dict[str, StoredTensor]:
    """Read one file's header.

    Raises:
        BadModel: the file is missing or damaged; the message names the tensor.
    """
    try:
        if path.exists() and not path.is_file():
            raise BadModel(path, "is not a file")
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, _MAX_HEADER_BYTES):
                raise BadModel(path, f"the header of {length} bytes exceeds the {size} bytes")
            header: Any = json.loads(file.read(length))
    except OSError as error:
        raise BadModel(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError):
        raise BadModel(path, "the header is not JSON") from None
    if not isinstance(header, dict):
        raise BadModel(path, "the header is not a JSON object")
    entries = cast(dict[str, Any], header)
    begin = 8 + length
    tensors = {
        name: _tensor(path, name, entry, begin, size)
        for name, entry in entries.items()
        if name != "__metadata__"
    }
    _check_apart(path, tensors)
    return tensors


def _check_apart(path: Path, tensors: Mapping[str, StoredTensor]) -> None:
    filled = [(name, each.view) for name, each in tensors.items() if each.view.size]
    filled.sort(key=lambda item: item[1].offset)
    for (_, before), (name, view) in pairwise(filled):
        if before.offset + before.size > view.offset:
            raise BadModel(path, "shares bytes with another tensor", name)


def _integers(values: Any, most: int) -> tuple[int, ...]:
    """Return a JSON list of at most ``most`` integers as a tuple.

    Raises:
        TypeError: the value is not such a list.
    """
    items = cast(list[Any], values) if isinstance(values, list) else list[Any]([None])
    if len(items) > most or any(type(item) is not int for item in items):
        raise TypeError(f"not a list of at most {most} integers")
    return tuple(cast(list[int], items))


def _tensor(path: Path, name: str, entry: Any, begin: int, size: int) -> StoredTensor:
    try:
        kind, shape = str(entry["dtype"]), _integers(entry["shape"], MAX_RANK)
        first, last = _integers(entry["data_offsets"], 2)
    except (KeyError, TypeError, ValueError):
        raise BadModel(path, "dtype, shape or data_offsets are missing", name) from None
    element = _ELEMENTS.get(kind)
    if element is None:
        raise BadModel(path, f"element type {kind} is not supported", name)
    nbytes = math.prod(shape) * NUMPY[element].itemsize
    if min(shape, default=0) < 0 or last - first != nbytes:
        raise BadModel(path, f"{last - first} bytes for {kind} {list(shape)}, not {nbytes}", name)
    if first < 0 or begin + last > size:
        raise BadModel(
            path, f"bytes {begin + first} to {begin + last} are outside the file of {size}", name
        )
    return StoredTensor(element, shape, FileView(str(path), begin + first, nbytes, element))
