"""Rotary position embedding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.logic import GreaterEqual
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.reduce import ReduceMax
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.frontends.huggingface.decoder import Rotary


@dataclass(frozen=True, slots=True)
class Angles:
    """Cos and sin tables of the positions, f32 [B, 1, M, width]."""

    cos: SSAValue
    sin: SSAValue
    width: int
    """Number of rotated channels of a head."""


def angles(g: GraphBuilder, rotary: Rotary, position_ids: SSAValue) -> Angles:
    """Return cos and sin of frequencies × positions; both halves of a head have equal tables."""
    positions = g.convert(g.unsqueeze(position_ids, 1), "f32")
    product = g.matmul(_frequencies(g, rotary, position_ids), positions, transpose_b=False)
    half = g.transpose(product, 0, 2, 1)
    both = g.concat([half, half], -1)
    cos, sin = g.op(elementwise.Cos, both), g.op(elementwise.Sin, both)
    if rotary.factor != 1:
        cos, sin = g.times(cos, rotary.factor), g.times(sin, rotary.factor)
    return Angles(g.unsqueeze(cos, 1), g.unsqueeze(sin, 1), rotary.width)


def _frequencies(g: GraphBuilder, rotary: Rotary, position_ids: SSAValue) -> SSAValue:
    """Return frequencies f32 [1, pairs, 1]; the long ones if the last position needs them."""
    short, long = (
        np.array(each, np.float32).reshape(1, -1, 1) for each in (rotary.frequencies, rotary.long)
    )
    if not rotary.long:
        return g.constant(short)
    last = g.op(ReduceMax, position_ids, g.ints(0, 1), keep_dims=bool_attr(False))
    is_long = g.op(GreaterEqual, last, g.scalar(rotary.context))
    return g.op(elementwise.Select, is_long, g.constant(long), g.constant(short))


def rotate(g: GraphBuilder, x: SSAValue, by: Angles, name: str) -> SSAValue:
    """Rotate pairs of the first channels of heads, [B, H, M, D], and keep the others."""
    if by.width == shape_of(x)[-1]:
        return _rotate_all(g, x, by, name)
    turned = _rotate_all(g, g.slice(x, 3, 0, by.width), by, name)
    return g.concat([turned, g.slice(x, 3, by.width)], -1)


def _rotate_all(g: GraphBuilder, x: SSAValue, by: Angles, name: str) -> SSAValue:
    """Return x · cos + [-x₂, x₁] · sin."""
    half = by.width // 2
    first, second = g.slice(x, 3, 0, half), g.slice(x, 3, half)
    rotated = g.concat([g.times(second, -1), first], -1)
    return g.op(
        elementwise.Add,
        g.op(elementwise.Multiply, x, by.cos),
        g.op(elementwise.Multiply, rotated, by.sin),
        name=name,
    )
