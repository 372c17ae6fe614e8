"""Rules for ops on the ends of axes: padding, cropping, rolling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import shape, slicing
from compiler_layer.dialects.ov.constant import Constant, values_of
from compiler_layer.dialects.ov.op import OvOp, int_attr
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import NUMPY
from compiler_layer.rewriting.replace import insert_before, slice_before

MOST_PADDED = 1 << 22
"""Maximum number of elements of a result whose padding becomes constants."""


def roll(op: slicing.Roll) -> SSAValue | None:
    """Replace a roll: concatenate the elements behind a cut with the elements before it."""
    shifts = op.shifts()
    if shifts is None:
        return None
    value = op.x
    for axis, count in shifts.items():
        length = shape_of(value)[axis]
        cut = -count % length if length else 0
        if cut:
            ends = [slice_before(op, value, axis, *bounds) for bounds in ((cut, length), (0, cut))]
            value = insert_before(op, slicing.Concat.make([ends], axis=int_attr(axis)))
    return value


def pad_of_nothing(op: shape.Pad) -> SSAValue | None:
    """Remove padding that neither adds nor removes elements."""
    ends = _ends(op)
    return op.x if ends is not None and not any(map(any, ends)) else None


def pad_of_constants(op: shape.Pad) -> SSAValue | None:
    """Replace padding with a constant number: concatenate constants and the operand."""
    ends = _ends(op)
    number = np.zeros(()) if op.value is None else values_of(op.value)
    if ends is None or number is None or op.pad_mode.data != "constant":
        return None
    if math.prod(shape_of(op.output)) > MOST_PADDED:
        return None
    value = op.x
    for axis, (begin, end) in enumerate(ends):
        length = shape_of(value)[axis]
        first, last = max(-begin, 0), length - max(-end, 0)
        if (first, last) != (0, length):
            value = slice_before(op, value, axis, first, last)
        sides = [_constant(op, value, axis, count, number) for count in (begin, end)]
        if any(sides):
            parts = [*sides[0], value, *sides[1]]
            value = insert_before(op, slicing.Concat.make([parts], axis=int_attr(axis)))
    return value


def _ends(op: shape.Pad) -> list[tuple[int, int]] | None:
    """Return the elements added before and behind each axis; None if they are not constant."""
    begin, end = (values_of(each) for each in (op.pads_begin, op.pads_end))
    if begin is None or end is None:
        return None
    rank = len(shape_of(op.x))
    ends = (np.broadcast_to(each.reshape(-1), (rank,)).tolist() for each in (begin, end))
    return list(zip(*ends, strict=True))


def _constant(
    place: OvOp, beside: SSAValue, axis: int, count: int, number: np.ndarray
) -> Sequence[SSAValue]:
    """Return a constant of ``count`` repeated numbers; nothing if ``count`` is below 1."""
    if count < 1:
        return []
    dims, element = list(shape_of(beside)), element_of(beside)
    dims[axis] = count
    values = np.full(dims, number.reshape(()), number.dtype)
    return [insert_before(place, Constant.inline(values.astype(NUMPY[element]), element))]
