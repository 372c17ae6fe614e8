"""Lowering of resampling to gathers and SHAVE."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Add, Convert, Multiply
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.interpolate import (
    F32,
    NEAREST,
    Interpolate,
    Ints,
    ResampledAxis,
)
from compiler_layer.dialects.ov.op import int_attr
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FOUR_BIT
from compiler_layer.errors import UnsupportedModel
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.replace import (
    insert_before,
    reshape_before,
    slice_before,
    take_over,
    transpose_before,
)

_MOST_COLUMNS = 1 << 15
"""Limit of the elements of a row that are gathered together: 128 KiB in f32."""

_EXACT = "f32"
"""Type of sums of neighbours, which are rounded once."""


def interpolate_refusal(op: Interpolate) -> str | None:
    """Return why the device cannot resample, or None."""
    if op.known_resampling() is None:
        kind = op.shape_calculation_mode.data
        return f"with {kind} that are not constants"
    return f"of {element_of(op.x)}" if element_of(op.x) in FOUR_BIT else None


def _lower(op: Interpolate) -> None:
    refusal, resampled = interpolate_refusal(op), op.known_resampling()
    if refusal is not None or resampled is None:
        raise UnsupportedModel(f"Interpolate {op.friendly_name!r} {refusal}")
    value = op.x
    for each in resampled:
        value = _resampled(op, value, each)
    take_over(op, _converted(op, value, element_of(op.x)))


def _resampled(op: Interpolate, value: SSAValue, each: ResampledAxis) -> SSAValue:
    """Resample an axis: its elements are rows of a table."""
    shape = shape_of(value)
    others = [axis for axis in range(len(shape)) if axis != each.axis]
    moved = transpose_before(op, value, [each.axis, *others])
    table = reshape_before(op, moved, (each.size, math.prod(shape[axis] for axis in others)))
    if op.mode.data == NEAREST:
        rows = _rows(op, table, each.nearest)
    else:
        rows = _between(op, table, *each.neighbours)
    made = reshape_before(op, rows, (each.made, *(shape[axis] for axis in others)))
    back = [*range(1, each.axis + 1), 0, *range(each.axis + 1, len(shape))]
    return transpose_before(op, made, back)


def _between(op: Interpolate, table: SSAValue, below: Ints, above: Ints, share: F32) -> SSAValue:
    """Return the sum of two rows, weighted by the share of the second."""
    weighted = (
        insert_before(
            op,
            Multiply.make(
                [
                    _converted(op, _rows(op, table, numbers), _EXACT),
                    insert_before(op, Constant.inline(weights[:, None])),
                ]
            ),
        )
        for numbers, weights in ((below, 1 - share), (above, share))
    )
    return insert_before(op, Add.make([*weighted]))


def _rows(op: Interpolate, table: SSAValue, numbers: Ints) -> SSAValue:
    """Gather rows of a table; CMX holds several rows, so wide ones are gathered in parts."""
    listed = insert_before(op, Constant.inline(numbers))
    first = insert_before(op, Constant.inline(np.array(0, np.int64)))
    width = shape_of(table)[1]
    parts = [table]
    if width > _MOST_COLUMNS:
        begins = range(0, width, _MOST_COLUMNS)
        ends = (min(begin + _MOST_COLUMNS, width) for begin in begins)
        parts = [slice_before(op, table, 1, *each) for each in zip(begins, ends, strict=True)]
    rows = [
        insert_before(op, Gather.make([part, listed, first], batch_dims=int_attr(0)))
        for part in parts
    ]
    return rows[0] if len(rows) == 1 else insert_before(op, Concat.make([rows], axis=int_attr(1)))


def _converted(op: Interpolate, value: SSAValue, element: str) -> SSAValue:
    if element_of(value) == element:
        return value
    return insert_before(op, Convert.make([value], destination_type=StringAttr(element)))


class LowerInterpolate(OpPass):
    """Lower resampling to gathers and SHAVE, one axis after the other.

    Before:  %y = ov.Interpolate(%x : [N, C, 2, W], sizes [3], axes [2]) {mode = "linear_onnx"}
    After:   %t = ov.Reshape(ov.Transpose(%x, [2, 0, 1, 3])) : [2, N · C · W]
             %r = ov.Gather(%t, [0, 0, 1]) · [1, 0.5, 1] + ov.Gather(%t, [1, 1, 1]) · [0, 0.5, 0]
             %y = ov.Transpose(ov.Reshape(%r) : [3, N, C, W], [1, 2, 0, 3])

    Nearest elements are one gather. Sums are in f32 until the last axis.

    Raises:
        UnsupportedModel: the sizes or scales are not constants, or the elements have 4 bits.
    """

    name = "lower-interpolate"
    rewrites = ((Interpolate, _lower),)
