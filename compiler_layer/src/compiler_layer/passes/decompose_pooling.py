"""Decomposition of pooling into element-wise ops."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.convolution import SPATIAL
from compiler_layer.dialects.ov.elementwise import Add, Maximum, Multiply
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.pooling import AvgPool, MaxPool, PoolOp
from compiler_layer.dialects.ov.shape import Pad
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import convert_values
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.replace import insert_before, slice_before, take_over

_FLOATS = ("f32", "f16", "bf16")


def _number(op: PoolOp, value: float | np.ndarray) -> SSAValue:
    kind = element_of(op.x)
    numbers = convert_values(np.array(value, np.float32), "f32", kind)
    return insert_before(op, Constant.inline(numbers, kind))


def _elements(op: PoolOp, padding: float) -> list[SSAValue]:
    """Return the first elements of all windows, the second elements, and so on."""
    ends = np.array([(0, 0)] * SPATIAL + op.pads(), np.int64).T
    value = op.x
    if ends.any():
        begin, end = (insert_before(op, Constant.inline(each.copy())) for each in ends)
        fill = [_number(op, padding)]
        padded = Pad.make([value, begin, end, fill], pad_mode=StringAttr("constant"))
        value = insert_before(op, padded)
    return [_at(op, value, offset) for offset in np.ndindex(*op.kernel.get_values())]


def _at(op: PoolOp, value: SSAValue, offset: tuple[int, ...]) -> SSAValue:
    """Return one element of each window."""
    places = shape_of(op.results[0])[SPATIAL:]
    steps = zip(offset, op.steps(), op.strides.get_values(), places, strict=True)
    for axis, (number, step, stride, count) in enumerate(steps, SPATIAL):
        first = number * step
        value = slice_before(op, value, axis, first, first + (count - 1) * stride + 1, stride)
    return value


def _take_largest(op: MaxPool) -> None:
    if element_of(op.x) not in _FLOATS or op.indices.uses:
        return

    def larger(a: SSAValue, b: SSAValue) -> SSAValue:
        return insert_before(op, Maximum.make([a, b]))

    op.values.replace_all_uses_with(reduce(larger, _elements(op, -math.inf)))


def _take_mean(op: AvgPool) -> None:
    if element_of(op.x) not in _FLOATS:
        return

    def plus(a: SSAValue, b: SSAValue) -> SSAValue:
        return insert_before(op, Add.make([a, b]))

    total = reduce(plus, _elements(op, 0))
    take_over(op, insert_before(op, Multiply.make([total, _number(op, 1 / _counts(op))])))


def _counts(op: AvgPool) -> np.ndarray:
    """Return the number of elements that count, of each window: [positions]."""
    counts = np.ones((), np.float32)
    sizes = zip(shape_of(op.x)[SPATIAL:], shape_of(op.output)[SPATIAL:], op.pads(), strict=True)
    for axis, (size, places, (before, _)) in enumerate(sizes):
        kernel, stride = op.kernel.get_values()[axis], op.strides.get_values()[axis]
        begins = np.arange(places) * stride - before
        inside = np.minimum(begins + kernel, size) - np.maximum(begins, 0)
        counts = counts[..., None] * (inside if int_value(op.exclude_pad) else kernel)
    return counts


class DecomposePooling(OpPass):
    """Decompose pooling into the maximum, or the mean, of slices.

    Before:  %y = ov.MaxPool(%x : [B, C, 4, 4]) {kernel = [2, 2], strides = [2, 2]}
    After:   %y = ov.Maximum(ov.Maximum(%x[::2, ::2], %x[::2, 1::2]), …) : [B, C, 2, 2]

    A slice has the elements of all windows at one offset. Pooling of integers, and pooling whose
    indices are used, is left.

    Requires: ``specialize-shapes``.
    """

    name = "decompose-pooling"
    rewrites = ((MaxPool, _take_largest), (AvgPool, _take_mean))
