"""Recognises keys and values that are stored in fewer bits, for ``lower-attention``.

Integers of 8 bits have a scale for each row, which the DPU multiplies with. Floats of 8 or 16 bits
have none: if all rows share one, ``move-row-scales`` has moved it out of attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Reshape, Transpose
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FLOAT8
from compiler_layer.rewriting.match import producer
from compiler_layer.rewriting.replace import insert_before, reshape_before

INTEGERS = ("i8", "u8")
"""Types of integers that the DPU scales by rows."""

NARROW_FLOATS = FLOAT8 | {"f16", "bf16"}
"""Types of floats that the DPU widens by itself."""


@dataclass(frozen=True, slots=True)
class NarrowRows:
    """What attention reads: the parts of keys and values, as they are stored or as they were.

    Attributes:
        keys: parts [1, Hkv, S, D].
        values: parts as many.
        key_scales: for each part [1, Hkv, S, 1], or none.
        value_scales: likewise.
    """

    keys: Sequence[SSAValue]
    values: Sequence[SSAValue]
    key_scales: Sequence[SSAValue] = ()
    value_scales: Sequence[SSAValue] = ()


def narrow_rows(
    op: ScaledDotProductAttention, keys: Sequence[SSAValue], values: Sequence[SSAValue]
) -> NarrowRows:
    """Give keys and values as they are stored, if all their parts are in one narrow type.

    Args:
        op: the attention, before which new ops are inserted.
        keys: parts along the sequence.
        values: parts as many.
    """
    found = [_stored(part) for part in (*keys, *values)]
    known = [each for each in found if each is not None]
    kinds = {(element_of(each.rows), each.scale_element) for each in known}
    if len(known) < len(found) or len(kinds) > 1:
        return NarrowRows(keys, values)
    (k, k_scales), (v, v_scales) = (
        _moved(op, some) for some in (known[: len(keys)], known[len(keys) :])
    )
    return NarrowRows(k, v, k_scales, v_scales)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A part in a narrow type.

    Attributes:
        rows: as they are stored.
        part: as attention reads them.
        move: the Transpose or Reshape between the two.
        scales: of each row; None of floats.
    """

    rows: SSAValue
    part: SSAValue
    move: Transpose | Reshape | None
    scales: SSAValue | None

    @property
    def scale_element(self) -> str:
        return "" if self.scales is None else element_of(self.scales)

    def moved(self, place: ScaledDotProductAttention, value: SSAValue) -> SSAValue:
        """Rows or their scales, laid out as attention reads them."""
        if isinstance(self.move, Transpose):
            return insert_before(place, Transpose.make([value, self.move.order]))
        if self.move is not None:
            dims = (*shape_of(self.part)[:-1], shape_of(value)[-1])
            return reshape_before(place, value, dims)
        return value


def _moved(
    place: ScaledDotProductAttention, parts: Sequence[_Stored]
) -> tuple[list[SSAValue], list[SSAValue]]:
    """The rows of parts and their scales, each where it belongs."""
    rows, scales = list[SSAValue](), list[SSAValue]()
    for part in parts:
        rows.append(part.moved(place, part.rows))
        if part.scales is not None:
            scales.append(part.moved(place, part.scales))
    return rows, scales


def _stored(part: SSAValue) -> _Stored | None:
    """What a part is made of, if that is of a narrow type; None if it is not."""
    move = producer(part, Transpose) or producer(part, Reshape)
    wide = part if move is None else move.x
    if not _keeps_channels(move, wide, part):
        return None
    convert, scaled = producer(wide, Convert), producer(wide, Dequantize)
    if convert is not None and element_of(convert.x) in NARROW_FLOATS:
        return _Stored(convert.x, part, move, None)
    if scaled is None or scaled.zero is not None:
        return None
    by_row = shape_of(scaled.scale) == (*shape_of(scaled.stored)[:-1], 1)
    if element_of(scaled.stored) not in INTEGERS or not by_row:
        return None
    return _Stored(scaled.stored, part, move, scaled.scale)


def _keeps_channels(move: Transpose | Reshape | None, wide: SSAValue, part: SSAValue) -> bool:
    """Whether the last dimension stays the last, so that a row is a row."""
    if isinstance(move, Transpose):
        return move.permutation()[-1] == len(shape_of(wide)) - 1
    return shape_of(wide)[-1] == shape_of(part)[-1]
