"""Rewrite of this compiler's own ops with ops of OpenVINO's opsets."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.attention import RMS, RoPE, ScaledDotProductAttention
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import (
    Add,
    Convert,
    Divide,
    Multiply,
    Negative,
    Sqrt,
    Subtract,
)
from compiler_layer.dialects.ov.op import OvOp, bool_attr, int_attr
from compiler_layer.dialects.ov.quantize import Dequantize, FakeConvert, FakeQuantize
from compiler_layer.dialects.ov.reduce import ReduceMean
from compiler_layer.dialects.ov.shape import Tile
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FLOATS
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.replace import insert_before, reshape_before, slice_before, take_over


def _converted(place: OvOp, value: SSAValue, element: str) -> SSAValue:
    if element_of(value) == element:
        return value
    return insert_before(place, Convert.make([value], destination_type=StringAttr(element)))


def _expand(op: Dequantize) -> None:
    value = _converted(op, op.stored, "f32")
    if op.zero is not None:
        value = insert_before(op, Subtract.make([value, _converted(op, op.zero, "f32")]))
    value = insert_before(op, Multiply.make([value, _converted(op, op.scale, "f32")]))
    take_over(op, _converted(op, value, op.destination_type.data))


def _expand_rms(op: RMS) -> None:
    x = _converted(op, op.x, "f32")
    last = insert_before(op, Constant.inline(np.array([-1], np.int64)))
    epsilon = insert_before(op, Constant.inline(np.array(op.epsilon.value.data, np.float32)))
    square = insert_before(op, Multiply.make([x, x]))
    mean = insert_before(op, ReduceMean.make([square, last], keep_dims=bool_attr(True)))
    root = insert_before(op, Sqrt.make([insert_before(op, Add.make([mean, epsilon]))]))
    value = insert_before(op, Divide.make([x, root]))
    if op.gamma is not None:
        value = insert_before(op, Multiply.make([value, _converted(op, op.gamma, "f32")]))
    take_over(op, _converted(op, value, element_of(op.output)))


def _expand_rope(op: RoPE) -> None:
    x, cos, sin = (_converted(op, value, "f32") for value in (op.x, op.cos, op.sin))
    shape = shape_of(x)
    axis, width = len(shape) - 1, shape[-1]
    second = slice_before(op, x, axis, width // 2, width)
    turned = [insert_before(op, Negative.make([second])), slice_before(op, x, axis, 0, width // 2)]
    rotated = insert_before(op, Concat.make([turned], axis=int_attr(axis)))
    plain = insert_before(op, Multiply.make([x, cos]))
    value = insert_before(op, Add.make([plain, insert_before(op, Multiply.make([rotated, sin]))]))
    take_over(op, _converted(op, value, element_of(op.output)))


def _expand_attention(op: ScaledDotProductAttention) -> None:
    """Give each query head its own key and value head, and all operands one type."""
    if len(shape_of(op.q)) > 2:
        _repeat_heads(op)
    _agree(op)


def _repeat_heads(op: ScaledDotProductAttention) -> None:
    heads = shape_of(op.q)[-3]
    for index in (1, 2):
        value = op.operands[index]
        *outer, own, rows, width = shape_of(value)
        if own != heads:
            shape = (*outer, own, 1, rows, width)
            repeats = np.array([*(1 for _ in outer), 1, heads // own, 1, 1], np.int64)
            apart = reshape_before(op, value, shape)
            tiled = Tile.make([apart, insert_before(op, Constant.inline(repeats))])
            many = insert_before(op, tiled)
            op.operands[index] = reshape_before(op, many, (*outer, heads, rows, width))


def _agree(op: ScaledDotProductAttention | FakeConvert | FakeQuantize) -> None:
    """Convert all float operands to the type of the first operand."""
    element = element_of(op.operands[0])
    for index, operand in enumerate(op.operands):
        if element_of(operand) in FLOATS:
            op.operands[index] = _converted(op, operand, element)


class ToOpset(OpPass):
    """Rewrite this compiler's own ops with ops of OpenVINO's opsets.

    Before:  %w = ov.Dequantize(%stored : …xu8, %scale : …xf16) : …xf32
             %y = ov.ScaledDotProductAttention(%q : …xf16, %k, %v, %mask : …xf32)
    After:   %c = ov.Convert(%stored) : …xf32 ; %s = ov.Convert(%scale) : …xf32
             %w = ov.Multiply(%c, %s) : …xf32
             %m = ov.Convert(%mask) : …xf16 ; %y = ov.ScaledDotProductAttention(%q, %k, %v, %m)

    RMS and RoPE become the f32 graphs that ``fuse-rms`` and ``fuse-rope`` match, and K and V are
    repeated for all query heads. The pass is needed to run the graph elsewhere: no opset has
    Dequantize or mixes float types.

    Requires: ``specialize-shapes``, because heads are counted.
    """

    name = "to-opset"
    rewrites = (
        (Dequantize, _expand),
        (RMS, _expand_rms),
        (RoPE, _expand_rope),
        (ScaledDotProductAttention, _expand_attention),
        (FakeConvert, _agree),
        (FakeQuantize, _agree),
    )
