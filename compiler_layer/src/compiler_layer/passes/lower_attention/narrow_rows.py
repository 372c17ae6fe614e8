"""Keys and values that are stored in fewer bits, and that the DPU reads directly.

8-bit integers have a scale for each row, which the DPU applies. 8- and 16-bit floats have none:
``move-row-scales`` moves a scale that all rows share out of attention.
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
"""Integer types that the DPU scales by rows."""

NARROW_FLOATS = FLOAT8 | {"f16", "bf16"}
"""Float types that the DPU widens itself."""


@dataclass(frozen=True, slots=True)
class NarrowRows:
    """The operands of attention: parts of keys and values, narrow or unchanged.

    Attributes:
        keys: parts [1, Hkv, S, D].
        values: parts, in the same number as keys.
        key_scales: [1, Hkv, S, 1] for each part, or empty.
        value_scales: [1, Hkv, S, 1] for each part, or empty.
    """

    keys: Sequence[SSAValue]
    values: Sequence[SSAValue]
    key_scales: Sequence[SSAValue] = ()
    value_scales: Sequence[SSAValue] = ()


def narrow_rows(
    op: ScaledDotProductAttention, keys: Sequence[SSAValue], values: Sequence[SSAValue]
) -> NarrowRows:
    """Return keys and values in their stored type, if all parts have one narrow type.

    Args:
        op: the attention, before which new ops are inserted.
        keys: parts along the sequence.
        values: parts, in the same number as keys.
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
        rows: the stored rows.
        part: the rows as attention reads them.
        move: the Transpose or Reshape between the two.
        scales: one for each row; None for floats.
    """

    rows: SSAValue
    part: SSAValue
    move: Transpose | Reshape | None
    scales: SSAValue | None

    @property
    def scale_element(self) -> str:
        return "" if self.scales is None else element_of(self.scales)

    def moved(self, place: ScaledDotProductAttention, value: SSAValue) -> SSAValue:
        """Lay out rows or their scales as attention reads them."""
        if isinstance(self.move, Transpose):
            return insert_before(place, Transpose.make([value, self.move.order]))
        if self.move is not None:
            dims = (*shape_of(self.part)[:-1], shape_of(value)[-1])
            return reshape_before(place, value, dims)
        return value


def _moved(
    place: ScaledDotProductAttention, parts: Sequence[_Stored]
) -> tuple[list[SSAValue], list[SSAValue]]:
    """Return the rows of parts and their scales, laid out as attention reads them."""
    rows, scales = list[SSAValue](), list[SSAValue]()
    for part in parts:
        rows.append(part.moved(place, part.rows))
        if part.scales is not None:
            scales.append(part.moved(place, part.scales))
    return rows, scales


def _stored(part: SSAValue) -> _Stored | None:
    """Return the stored rows of a part, or None if their type is not narrow."""
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
    """Return whether the last dimension stays last, so that rows stay rows."""
    if isinstance(move, Transpose):
        return move.permutation()[-1] == len(shape_of(wide)) - 1
    return shape_of(wide)[-1] == shape_of(part)[-1]
