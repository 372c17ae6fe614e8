"""Small edits of a graph: insert ops, and replace an op but keep its name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, bool_attr, int_attr
from compiler_layer.dialects.ov.shape import Reshape, Transpose
from compiler_layer.dialects.ov.slicing import Slice, Split
from compiler_layer.dialects.ov.types import Shape, shape_of


def insert_before(place: Operation, op: Operation) -> SSAValue:
    """Insert an op with one result before another one; return the result."""
    Rewriter.insert_op(op, InsertPoint.before(place))
    return op.results[0]


def reshape_before(place: Operation, value: SSAValue, shape: Shape) -> SSAValue:
    """Insert a reshape to a static shape."""
    pattern = insert_before(place, Constant.inline(np.array(shape, np.int64)))
    return insert_before(place, Reshape.make([value, pattern], special_zero=bool_attr(False)))


def transpose_before(place: Operation, value: SSAValue, order: Sequence[int]) -> SSAValue:
    """Insert a transpose."""
    axes = insert_before(place, Constant.inline(np.array(order, np.int64)))
    return insert_before(place, Transpose.make([value, axes]))


def slice_before(
    place: Operation, value: SSAValue, axis: int, start: int, stop: int, step: int = 1
) -> SSAValue:
    """Insert a slice of one dimension."""
    bounds = (
        insert_before(place, Constant.inline(np.array([bound], np.int64)))
        for bound in (start, stop, step, axis)
    )
    first, end, stride, axes = bounds
    return insert_before(place, Slice.make([value, first, end, stride, [axes]]))


def split_before(place: Operation, value: SSAValue, axis: int) -> Sequence[SSAValue]:
    """Insert a split of one dimension into slices of 1; return the value if it is one slice."""
    count = shape_of(value)[axis]
    if count == 1:
        return [value]
    along = insert_before(place, Constant.inline(np.array(axis, np.int64)))
    split = Split.make([value, along], num_splits=int_attr(count))
    insert_before(place, split)
    return split.results


def replace(op: Operation, *new: Operation) -> None:
    """Replace an op by others; the last one has the results and inherits the name."""
    name = op.attributes.get(NAME_ATTRIBUTE)
    if name is not None:
        new[-1].attributes[NAME_ATTRIBUTE] = name
    Rewriter.replace_op(op, list(new))


def take_over(op: Operation, value: SSAValue) -> None:
    """Replace an op with one result by a value, whose op inherits the name."""
    name = op.attributes.get(NAME_ATTRIBUTE)
    if name is not None and isinstance(value.owner, Operation):
        value.owner.attributes[NAME_ATTRIBUTE] = name
    Rewriter.replace_op(op, [], [value])
