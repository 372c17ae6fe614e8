"""Serialized models: a version record, an IR's XML and its weights in one buffer.

Source: docs/reference/driver_compiler.md#serialized-models.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from compiler_layer.errors import BadModel

NAME = "the serialized model"
"""Name of the model in errors."""

_HEADER = struct.Struct("<HHI")
_SIZE = struct.Struct("<Q")
_ELEMENTS = 2


@dataclass(frozen=True, slots=True)
class SerializedModel:
    """Parts of a serialized model; the weights are a view of its buffer."""

    version: tuple[int, int]
    """Version of the compiler that the model was written for."""
    xml: bytes
    weights: memoryview


def read_serialized_model(buffer: memoryview) -> SerializedModel:
    """Read a serialized model.

    Args:
        buffer: bytes that may come from anywhere.

    Raises:
        BadModel: a length does not agree with the buffer.
    """
    data = buffer.cast("B")
    if len(data) < _HEADER.size:
        raise BadModel(NAME, f"{len(data)} bytes are too few for its header")
    major, minor, count = _HEADER.unpack_from(data)
    if count != _ELEMENTS:
        raise BadModel(NAME, f"{count} elements instead of {_ELEMENTS}: XML and weights")
    xml, offset = _element(data, _HEADER.size, "XML")
    weights, offset = _element(data, offset, "weights")
    if offset != len(data):
        raise BadModel(NAME, f"{len(data) - offset} bytes follow the weights")
    return SerializedModel((major, minor), bytes(xml), weights)


def write_serialized_model(version: tuple[int, int], xml: bytes, weights: bytes) -> bytes:
    """Write a serialized model."""
    header = _HEADER.pack(*version, _ELEMENTS)
    return b"".join((header, _SIZE.pack(len(xml)), xml, _SIZE.pack(len(weights)), weights))


def _element(data: memoryview, offset: int, what: str) -> tuple[memoryview, int]:
    """Return an element that begins with its size, and the offset behind it."""
    begin = offset + _SIZE.size
    if begin > len(data):
        raise BadModel(NAME, f"it ends at byte {len(data)}, before the size of the {what}")
    (size,) = _SIZE.unpack_from(data, offset)
    if size > len(data) - begin:
        raise BadModel(NAME, f"{size} bytes of {what}, but {len(data) - begin} follow")
    return data[begin : begin + size], begin + size
