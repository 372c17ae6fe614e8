"""Element types by OpenVINO's names, and their representation in numpy, memory and files.

This module does not depend on graphs: a runtime converts weights without loading the compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driver_layer.abi.dtypes import bf16_to_f32, f32_to_bf16, pack_4bit, unpack_4bit
from driver_layer.abi.float8 import FORMATS, f8_to_f32, f32_to_f8

Array = npt.NDArray[Any]

NUMPY: dict[str, np.dtype[Any]] = {
    "f64": np.dtype("<f8"),
    "f32": np.dtype("<f4"),
    "f16": np.dtype("<f2"),
    "bf16": np.dtype("<u2"),
    "f8e4m3": np.dtype("u1"),
    "f8e5m2": np.dtype("u1"),
    "i64": np.dtype("<i8"),
    "i32": np.dtype("<i4"),
    "i16": np.dtype("<i2"),
    "i8": np.dtype("i1"),
    "i4": np.dtype("i1"),
    "u64": np.dtype("<u8"),
    "u32": np.dtype("<u4"),
    "u16": np.dtype("<u2"),
    "u8": np.dtype("u1"),
    "u4": np.dtype("u1"),
    "nf4": np.dtype("u1"),
    "boolean": np.dtype("?"),
}
"""Representation of each type in numpy: bf16 and f8 as raw bits, one 4-bit element per byte."""

FOUR_BIT = frozenset({"i4", "u4", "nf4"})
"""Types stored in memory and files as two elements per byte, the first in the lower half."""

FLOAT8 = frozenset(FORMATS)
"""8-bit float types."""

RAW_FLOATS = frozenset({"bf16", *FLOAT8})
"""Floats without a numpy type, held as raw bits."""

_FROM_NUMPY = {kind: name for name, kind in NUMPY.items() if name not in RAW_FLOATS | FOUR_BIT}

FLOATS = frozenset({"f64", "f32", "f16", *RAW_FLOATS})

INTEGERS = frozenset(NUMPY) - FLOATS - {"boolean", "nf4"}

NF4 = np.array(
    [
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
        *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
        *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
        *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ],
    np.float32,
)
"""Values of the codes of NF4, a 4-bit float: quantiles of a normal distribution, from -1 to 1.

Source: docs/reference/elf.md#nf4.
"""

_NF4_BOUNDS = (NF4[1:] + NF4[:-1]) / 2


def stored_bytes(element: str, count: int) -> int:
    """Return the number of bytes that ``count`` elements occupy in memory or a file."""
    return (count + 1) // 2 if element in FOUR_BIT else count * NUMPY[element].itemsize


def numpy_element(array_type: np.dtype[Any]) -> str:
    """Return the name of the element type that a numpy type represents."""
    return _FROM_NUMPY[array_type]


def convert_values(x: Array, source: str, target: str) -> Array:
    """Convert values between element types; floats are truncated towards zero for integers."""
    if source == target:
        return x
    with np.errstate(over="ignore", invalid="ignore"):
        return _converted(x, source, target)


def _converted(x: Array, source: str, target: str) -> Array:
    if source == "bf16":
        x = bf16_to_f32(x)
    if source == "nf4":
        x = NF4[x]
    if target == "nf4":
        return np.searchsorted(_NF4_BOUNDS, x.astype(np.float32)).astype(np.uint8)
    if source in FORMATS:
        x = f8_to_f32(x, FORMATS[source])
    if target == "bf16":
        return f32_to_bf16(x.astype(np.float32))
    if target in FORMATS:
        return f32_to_f8(x.astype(np.float32), FORMATS[target])
    if target in FOUR_BIT:
        return _wrapped(x.astype(np.int64), signed=target == "i4")
    return x != 0 if target == "boolean" else x.astype(NUMPY[target])


def _wrapped(x: npt.NDArray[np.int64], signed: bool) -> Array:
    """Return the lower four bits, in numpy's representation."""
    low = x & 15
    return np.where(low > 7, low - 16, low).astype(np.int8) if signed else low.astype(np.uint8)


def from_bytes(data: memoryview | bytes, element: str, count: int) -> Array:
    """Read ``count`` elements from their memory representation; 4-bit elements are unpacked."""
    if element in FOUR_BIT:
        packed = np.frombuffer(data, np.uint8)
        return unpack_4bit(packed, signed=element == "i4")[:count]
    return np.frombuffer(data, NUMPY[element])


def to_bytes(x: Array, element: str) -> bytes:
    """Return the elements in their memory representation, row-major."""
    if element in FOUR_BIT:
        return pack_4bit(x.reshape(-1)).tobytes()
    return np.ascontiguousarray(x, NUMPY[element]).tobytes()
