"""Values from one element type to another, and to and from bytes, as numpy holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from compiler_layer.dialects.ov.types import FOUR_BIT, NUMPY
from driver_layer.abi.dtypes import bf16_to_f32, f32_to_bf16, pack_4bit, unpack_4bit

Array = npt.NDArray[Any]


def convert_values(x: Array, source: str, target: str) -> Array:
    """Convert; bf16 is held as its raw bits, floats lose their fraction towards zero."""
    if source == target:
        return x
    with np.errstate(over="ignore", invalid="ignore"):
        return _converted(x, source, target)


def _converted(x: Array, source: str, target: str) -> Array:
    if source == "bf16":
        x = bf16_to_f32(x)
    if target == "bf16":
        return f32_to_bf16(x.astype(np.float32))
    if target in FOUR_BIT:
        return _wrapped(x.astype(np.int64), signed=target == "i4")
    return x != 0 if target == "boolean" else x.astype(NUMPY[target])


def _wrapped(x: npt.NDArray[np.int64], signed: bool) -> Array:
    """The lower four bits, as numpy holds them."""
    low = x & 15
    return np.where(low > 7, low - 16, low).astype(np.int8) if signed else low.astype(np.uint8)


def from_bytes(data: memoryview | bytes, element: str, count: int) -> Array:
    """Read ``count`` elements as memory holds them; 4-bit ones are unpacked."""
    if element in FOUR_BIT:
        packed = np.frombuffer(data, np.uint8)
        return unpack_4bit(packed, signed=element == "i4")[:count]
    return np.frombuffer(data, NUMPY[element])


def to_bytes(x: Array, element: str) -> bytes:
    """Give the elements as memory holds them, row-major."""
    if element in FOUR_BIT:
        return pack_4bit(x.reshape(-1)).tobytes()
    return np.ascontiguousarray(x, NUMPY[element]).tobytes()
