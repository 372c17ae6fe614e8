"""Lowering of reductions over dimensions other than the last to SHAVE."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import (
    Add,
    Binary,
    Divide,
    Maximum,
    Minimum,
    Multiply,
)
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.reduce import (
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reduction,
)
from compiler_layer.dialects.ov.types import along_axes, element_of, shape_of
from compiler_layer.elements import FLOATS, convert_values
from compiler_layer.errors import UnsupportedModel
from compiler_layer.passes.form_kernels import is_row_wise
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.replace import insert_before, reshape_before, split_before, take_over

_COMBINE: dict[type[Reduction], type[Binary]] = {
    ReduceSum: Add,
    ReduceMean: Add,
    ReduceMax: Maximum,
    ReduceMin: Minimum,
    ReduceProd: Multiply,
}
"""Element-wise op that combines two slices."""

_MOST = 256
"""Maximum number of slices that are combined one after the other."""


def reduction_refusal(op: Reduction) -> str | None:
    """Return why SHAVE cannot run a reduction; None if it can."""
    shape, axes = shape_of(op.x), op.reduced_axes()
    if axes == [len(shape) - 1] and not isinstance(op, ReduceProd):
        return None
    along = along_axes(axes, len(shape))
    if type(op) not in _COMBINE:
        return along
    if isinstance(op, ReduceMean) and element_of(op.x) not in FLOATS:
        return f"of {element_of(op.x)} {along}"
    longest = max((shape[axis] for axis in axes), default=1)
    return f"of {longest} slices {along}" if longest > _MOST else None


def _lower(op: Reduction) -> None:
    if is_row_wise(op):
        return
    refusal = reduction_refusal(op)
    if refusal is not None:
        raise UnsupportedModel(f"reduction {op.friendly_name!r} {refusal}")
    value = op.x
    for axis in op.reduced_axes():
        if axis == len(shape_of(value)) - 1 and not isinstance(op, ReduceProd):
            last = insert_before(op, Constant.inline(np.array([-1], np.int64)))
            value = insert_before(op, type(op).make([value, last], keep_dims=bool_attr(True)))
        else:
            value = _joined(op, value, axis)
    take_over(op, reshape_before(op, value, shape_of(op.output)))


def _joined(op: Reduction, value: SSAValue, axis: int) -> SSAValue:
    """Combine the slices along an axis; a dimension of 1 is left."""
    count = shape_of(value)[axis]
    joined, *others = split_before(op, value, axis)
    for other in others:
        joined = insert_before(op, _COMBINE[type(op)].make([joined, other]))
    if others and isinstance(op, ReduceMean):
        many = convert_values(np.full((1,) * len(shape_of(value)), count), "i64", element_of(op.x))
        divisor = insert_before(op, Constant.inline(many, element_of(op.x)))
        joined = insert_before(op, Divide.make([joined, divisor]))
    return joined


class LowerReduction(OpPass):
    """Lower reductions over dimensions other than the last to SHAVE.

    Before:  %y = ov.ReduceSum(%x, [0]) : (tensor<3x4xf32>) -> tensor<4xf32>
    After:   %a, %b, %c = ov.Split(%x, 0) ; %y = ov.Reshape(ov.Add(ov.Add(%a, %b), %c), [4])

    The slices are views, and the chain of element-wise ops becomes few kernels. A reduction over
    the last dimension is a kernel by itself, and keeps a dimension of 1.

    Raises:
        UnsupportedModel: the reduction has no element-wise equivalent, or too many slices.
    """

    name = "lower-reduction"
    rewrites = ((Reduction, _lower),)
