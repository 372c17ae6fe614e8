"""Removal of ops that change nothing in static shapes, and replacement by simpler ops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov import (
    activation,
    elementwise,
    gather,
    interpolate,
    logic,
    matmul,
    scatter,
    shape,
    slicing,
)
from compiler_layer.dialects.ov.constant import Constant, values_of
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import (
    element_of,
    is_static,
    shape_of,
    tensor_type,
)
from compiler_layer.elements import RAW_FLOATS
from compiler_layer.model import Model
from compiler_layer.passes.simplify.ends import pad_of_constants, pad_of_nothing, roll
from compiler_layer.passes.simplify.gather import (
    elements_of_whole_slices,
    gather_of_a_slice,
    gather_of_everything,
    gather_of_repetitions,
    tuples_as_numbers,
)
from compiler_layer.passes.simplify.scatter import (
    scatter_of_everything,
    scatter_of_places,
    scatter_of_runs,
)
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.match import producer
from compiler_layer.rewriting.replace import insert_before, reshape_before

_EXACT = 1 << 24
"""Limit up to which f32 counts elements exactly."""

Rule = Callable[[Any], SSAValue | None]


def same_type(op: OvOp) -> SSAValue | None:
    """Remove a conversion, broadcast, reshape, squeeze … to the operand's own type."""
    return op.operands[0] if op.operands[0].type == op.results[0].type else None


def whole_slice(op: slicing.Slice) -> SSAValue | None:
    """Remove a slice that takes all elements, in order."""
    taken = op.slices()
    if taken is None or any((s.step or 1) < 0 for s in taken):
        return None
    return same_type(op)


def identity_transpose(op: shape.Transpose) -> SSAValue | None:
    """Replace a transpose that keeps the order of dimensions, except for dimensions of 1."""
    source = shape_of(op.x)
    order = op.permutation()
    moved = [axis for axis in order if source[axis] != 1]
    if moved != sorted(moved):
        return None
    if order == sorted(order):
        return op.x
    return reshape_before(op, op.x, shape_of(op.output))


def double_transpose(op: shape.Transpose) -> SSAValue | None:
    """Merge a transpose of a transpose."""
    inner = producer(op.x, shape.Transpose)
    if inner is None:
        return None
    order = [inner.permutation()[axis] for axis in op.permutation()]
    if order == sorted(order):
        return inner.x
    known = insert_before(op, Constant.inline(np.array(order, np.int64)))
    return insert_before(op, shape.Transpose.make([inner.x, known]))


def concat_of_one(op: slicing.Concat) -> SSAValue | None:
    """Remove the empty operands of a concatenation."""
    filled = [part for part in op.parts if shape_of(part)[op.known_axis()] != 0]
    if len(filled) == len(op.parts):
        return None
    if len(filled) == 1:
        return filled[0]
    return insert_before(op, slicing.Concat.make([filled], axis=op.axis)) if filled else None


def and_with_true(op: logic.BitwiseAnd | logic.LogicalAnd) -> SSAValue | None:
    """Remove a conjunction with a constant that is true everywhere."""
    for known, other in ((op.a, op.b), (op.b, op.a)):
        values = values_of(known)
        if (
            values is not None
            and values.dtype == bool
            and values.all()
            and other.type == op.output.type
        ):
            return other
    return None


def times_one(op: elementwise.Multiply) -> SSAValue | None:
    """Remove a multiplication by a constant that is one everywhere."""
    for known, other in ((op.a, op.b), (op.b, op.a)):
        small = np.prod(shape_of(known), dtype=int) == 1
        values = values_of(known) if small and element_of(known) not in RAW_FLOATS else None
        if values is not None and (values == 1).all() and other.type == op.output.type:
            return other
    return None


def outer_product(op: matmul.MatMul) -> SSAValue | None:
    """Replace a matmul over a dimension of 1 by an element-wise multiplication; f32 stays exact."""
    a, b = shape_of(op.a), shape_of(op.b)
    if len(a) < 2 or len(b) < 2:
        return None
    inner = a[-2] if int_value(op.transpose_a) else a[-1]
    if inner != 1:
        return None
    left, right = op.a, op.b
    if int_value(op.transpose_a):
        left = reshape_before(op, left, (*a[:-2], a[-1], 1))
    if int_value(op.transpose_b):
        right = reshape_before(op, right, (*b[:-2], 1, b[-2]))
    return insert_before(op, elementwise.Multiply.make([left, right]))


def tile(op: shape.Tile) -> SSAValue | None:
    """Replace a tile by a broadcast along new dimensions before the repeated ones."""
    wanted = shape_of(op.output)
    dims = (1,) * (len(wanted) - len(shape_of(op.x))) + shape_of(op.x)
    if 0 in wanted:
        return None
    apart: list[int] = []
    repeated: list[int] = []
    for d, n in zip(dims, wanted, strict=True):
        apart += [d] if d in (1, n) else [1, d]
        repeated += [n] if d in (1, n) else [n // d, d]
    return _repeated(op, apart, repeated)


def _repeated(
    op: shape.Tile | interpolate.Interpolate, apart: Sequence[int], repeated: Sequence[int]
) -> SSAValue:
    """Reshape an op's operand, broadcast it, and reshape it to the op's result."""
    target = insert_before(op, Constant.inline(np.array(repeated, np.int64)))
    source = reshape_before(op, op.x, tuple(apart))
    many = insert_before(op, shape.Broadcast.make([source, target], mode=StringAttr("numpy")))
    return reshape_before(op, many, shape_of(op.output))


def broadcast_of_one(op: shape.Broadcast) -> SSAValue | None:
    """Replace a broadcast that only adds dimensions of 1 by a reshape."""
    if math.prod(shape_of(op.x)) != math.prod(shape_of(op.output)):
        return None
    return reshape_before(op, op.x, shape_of(op.output))


def double_reshape(op: shape.Reshape) -> SSAValue | None:
    """Merge a reshape of a reshape."""
    inner = producer(op.x, shape.Reshape)
    if inner is None or 0 in shape_of(op.output):
        return None
    return reshape_before(op, inner.x, shape_of(op.output))


def leaky(op: activation.PRelu) -> SSAValue | None:
    """Replace PRelu with one slope from 0 to 1: max(x, slope · x)."""
    slope = None if element_of(op.slope) in RAW_FLOATS else values_of(op.slope)
    if slope is None or slope.size != 1 or not 0 <= slope.item() <= 1:
        return None
    one = op.slope if not shape_of(op.slope) else reshape_before(op, op.slope, ())
    product = insert_before(op, elementwise.Multiply.make([op.x, one]))
    return insert_before(op, elementwise.Maximum.make([op.x, product]))


def resampled_to_itself(op: interpolate.Interpolate) -> SSAValue | None:
    """Remove a resampling that changes no length."""
    return op.x if op.known_resampling() == [] else None


def repeated_elements(op: interpolate.Interpolate) -> SSAValue | None:
    """Replace nearest-below upsampling by an integer factor: repeat each element."""
    modes = (op.mode.data, op.coordinate_transformation_mode.data, op.nearest_mode.data)
    wanted, own = shape_of(op.output), shape_of(op.x)
    if modes != ("nearest", "asymmetric", "floor") or not is_static((*own, *wanted)):
        return None
    if not 0 < max(wanted) < _EXACT:
        return None
    times = [1] * len(own)
    for each in op.known_resampling() or ():
        if not float(each.scale).is_integer() or each.made != each.size * each.scale:
            return None
        times[each.axis] = int(each.scale)
    apart, target = list[int](), list[int]()
    for size, each in zip(own, times, strict=True):
        apart += [size] if each == 1 else [size, 1]
        target += [size] if each == 1 else [size, each]
    return _repeated(op, apart, target)


RULES: dict[type[OvOp], tuple[Rule, ...]] = {
    elementwise.Convert: (same_type,),
    shape.Broadcast: (same_type, broadcast_of_one),
    shape.Pad: (pad_of_nothing, pad_of_constants),
    shape.Tile: (tile,),
    shape.Reshape: (same_type, double_reshape),
    shape.Squeeze: (same_type,),
    shape.Unsqueeze: (same_type,),
    slicing.Slice: (whole_slice,),
    shape.Transpose: (identity_transpose, double_transpose),
    slicing.Concat: (concat_of_one,),
    slicing.Roll: (roll,),
    gather.Gather: (gather_of_everything, gather_of_a_slice, gather_of_repetitions),
    gather.GatherElements: (elements_of_whole_slices,),
    gather.GatherND: (tuples_as_numbers,),
    logic.BitwiseAnd: (and_with_true,),
    logic.LogicalAnd: (and_with_true,),
    elementwise.Multiply: (times_one,),
    matmul.MatMul: (outer_product,),
    activation.PRelu: (leaky,),
    interpolate.Interpolate: (resampled_to_itself, repeated_elements),
    scatter.ScatterNDUpdate: (scatter_of_everything, scatter_of_places, scatter_of_runs),
}
"""Rules of each op."""


def simplify_op(op: OvOp) -> bool:
    """Apply the rules of an op; return whether one replaced it."""
    for rule in RULES.get(type(op), ()):
        value = rule(op)
        if value is not None and tensor_type(value) == op.results[0].type:
            Rewriter.replace_op(op, [], [value])
            return True
    return False


class Simplify(GraphPass):
    """Remove ops that change nothing, and replace others by simpler ones.

    Before:  %a = ov.Concat(%empty : tensor<1x4x0x32xf32>, %new) ; %b = ov.Broadcast(%a, [1,4,7,32])
    After:   %new

    Requires: ``specialize-shapes``.
    """

    name = "simplify"

    def _rewrite(self, model: Model) -> None:
        changed = True
        while changed:
            ops = [each for each in model.body.ops if isinstance(each, OvOp)]
            changed = any([simplify_op(each) for each in ops])
        remove_dead_code(model)
