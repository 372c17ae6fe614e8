"""Tensors of a safetensors file, which is untrusted.

Source: the safetensors format: 8 bytes of length, a JSON header, the tensors' bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, cast

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from genai_layer.runtime import Array

_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100 << 20
_METADATA = "__metadata__"
_TYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
"""Data types of adapters; bf16 as raw bits."""

Count = Annotated[int, Field(ge=0, lt=1 << 48)]


class _Tensor(BaseModel):
    """Tensor entry of the header; offsets count from the end of the header."""

    model_config = ConfigDict(extra="ignore", strict=True)

    dtype: str
    shape: Annotated[list[Count], Field(max_length=8)]
    data_offsets: Annotated[list[Count], Field(min_length=2, max_length=2)]


def read_tensors(content: bytes) -> dict[str, Array]:
    """Read all tensors of a file.

    Args:
        content: the complete file.

    Returns:
        Tensors f32 or f16 by name, read-only; bf16 is converted to f32.

    Raises:
        ValueError: the file is damaged, or has tensors of other types.
    """
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    if len(content) < _LENGTH_BYTES or length > len(content) - _LENGTH_BYTES:
        raise ValueError(f"the file is truncated: {len(content)} bytes, a header of {length}")
    begin = _LENGTH_BYTES + length
    described = _header(content[_LENGTH_BYTES:begin])
    _check_apart(described)
    data = memoryview(content)[begin:]
    return {name: _values(name, each, data) for name, each in described.items()}


def _header(text: bytes) -> dict[str, _Tensor]:
    if len(text) > _MAX_HEADER_BYTES:
        raise ValueError(f"the header has {len(text)} bytes, more than {_MAX_HEADER_BYTES}")
    try:
        header: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("the file has no JSON header; it is not a safetensors file") from None
    if not isinstance(header, dict):
        raise ValueError("the header is not a JSON object")
    found: dict[str, _Tensor] = {}
    for name, entry in cast(dict[str, Any], header).items():
        if name == _METADATA:
            continue
        try:
            found[name] = _Tensor.model_validate(entry)
        except ValidationError:
            raise ValueError(f"{name!r}: dtype, shape or data_offsets are invalid") from None
    return found


def _check_apart(tensors: Mapping[str, _Tensor]) -> None:
    """Reject tensors that share bytes."""
    spans = sorted((*each.data_offsets, name) for name, each in tensors.items())
    for (first, end, before), (begin, last, name) in pairwise(spans):
        if begin < end and first < end and begin < last:
            raise ValueError(f"{before!r} and {name!r} share bytes")


def _values(name: str, tensor: _Tensor, data: memoryview) -> Array:
    kind = _TYPES.get(tensor.dtype)
    if kind is None:
        raise ValueError(f"{name!r} is {tensor.dtype}; supported: {', '.join(_TYPES)}")
    begin, end = tensor.data_offsets
    nbytes = math.prod(tensor.shape) * kind.itemsize
    if end - begin != nbytes:
        raise ValueError(f"{name!r} has {end - begin} bytes for {tensor.dtype} {tensor.shape}")
    if end > len(data):
        raise ValueError(f"the file is truncated: {name!r} ends at {end} of {len(data)} bytes")
    values = np.frombuffer(data[begin:end], kind).reshape(tensor.shape)
    if tensor.dtype == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values
