"""Element types: their names, sizes and codes in the blob's metadata and in the graph extension.

Source: docs/reference/elf.md#element-types (DType, OVNodeType) and
docs/reference/level_zero.md#precision-codes (precision codes).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from driver_layer.abi.float8 import FORMATS, Float8, f8_to_f32, f32_to_f8


class DType(IntEnum):
    """Element types of tensor descriptors and of DPU and SHAVE operands."""

    UNSET = 0
    FP64 = 1
    FP32 = 2
    FP16 = 3
    F8E5M2 = 4
    U64 = 5
    U32 = 6
    U16 = 7
    U8 = 8
    I64 = 9
    I32 = 10
    I16 = 11
    I8 = 12
    I4 = 13
    NF4 = 15
    BIN = 16
    BFP16 = 19
    U4 = 20
    F8E4M3 = 21


@dataclass(frozen=True, slots=True)
class ElementType:
    """One element type.

    ``storage`` is the numpy type of one stored element: for bf16 and f8 the raw bits, for 4-bit
    types the byte that holds two of them.
    """

    name: str
    code: DType
    node_type: int
    precision: int
    bits: int
    storage: np.dtype[Any]


_TABLE = (
    # name   blob code    OV node  graph ext  bits  storage
    ("f64", DType.FP64, 6, 0xF, 64, "<f8"),
    ("f32", DType.FP32, 5, 1, 32, "<f4"),
    ("f16", DType.FP16, 4, 2, 16, "<f2"),
    ("bf16", DType.BFP16, 3, 9, 16, "<u2"),
    ("f8e4m3", DType.F8E4M3, 18, 0x13, 8, "u1"),
    ("f8e5m2", DType.F8E5M2, 19, 0x14, 8, "u1"),
    ("u64", DType.U64, 17, 0x10, 64, "<u8"),
    ("u32", DType.U32, 16, 0xA, 32, "<u4"),
    ("u16", DType.U16, 15, 3, 16, "<u2"),
    ("u8", DType.U8, 14, 4, 8, "u1"),
    ("i64", DType.I64, 11, 0x11, 64, "<i8"),
    ("i32", DType.I32, 10, 5, 32, "<i4"),
    ("i16", DType.I16, 9, 6, 16, "<i2"),
    ("i8", DType.I8, 8, 7, 8, "i1"),
    ("boolean", DType.BIN, 2, 0xE, 8, "u1"),
    ("i4", DType.I4, 7, 0xC, 4, "u1"),
    ("u4", DType.U4, 13, 0xB, 4, "u1"),
    ("nf4", DType.NF4, 20, 0x12, 4, "u1"),
)

ELEMENT_TYPES: dict[str, ElementType] = {
    name: ElementType(name, code, node, precision, bits, np.dtype(storage))
    for name, code, node, precision, bits, storage in _TABLE
}
"""All element types by name."""

BY_CODE: dict[int, ElementType] = {int(t.code): t for t in ELEMENT_TYPES.values()}
"""All element types by the code used in blobs."""

FLOAT8: dict[DType, Float8] = {ELEMENT_TYPES[name].code: kind for name, kind in FORMATS.items()}
"""The formats of 8-bit floats by the code used in blobs."""


def widened(kind: DType, raw: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the values of stored elements in f32; the type has at least 8 bits."""
    if kind is DType.BFP16:
        return bf16_to_f32(raw)
    if kind in FLOAT8:
        return f8_to_f32(raw, FLOAT8[kind])
    return raw.astype(np.float32)


def narrowed(kind: DType, values: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """Round f32 to the stored form of a float type (nearest, ties to even)."""
    if kind is DType.BFP16:
        return f32_to_bf16(values)
    if kind in FLOAT8:
        return f32_to_f8(values, FLOAT8[kind])
    return values.astype(BY_CODE[kind].storage)


def bf16_to_f32(raw: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Widen bf16, given as raw 16 bits, to f32; exact."""
    return (raw.astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Round f32 to bf16 (nearest, ties to even), as raw 16 bits; a NaN stays a NaN."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)


def unpack_4bit(packed: npt.NDArray[np.uint8], signed: bool) -> npt.NDArray[Any]:
    """Unpack each byte of the last dimension into two elements, i8 or u8, the lower half first."""
    pairs = np.stack([packed & 15, packed >> 4], -1)
    if signed:
        # The highest bit of a nibble is its sign.
        pairs = (pairs ^ 8).astype(np.int8) - np.int8(8)
    return pairs.reshape(*packed.shape[:-1], packed.shape[-1] * 2)


def pack_4bit(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Pack two elements of the last dimension into a byte, the first into the lower half."""
    low: npt.NDArray[np.uint8] = values.astype(np.uint8) & np.uint8(15)
    if low.shape[-1] % 2:
        low = np.concatenate([low, np.zeros_like(low[..., :1])], -1)
    return low[..., ::2] | low[..., 1::2] << np.uint8(4)
