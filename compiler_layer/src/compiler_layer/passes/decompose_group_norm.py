"""Decomposition of GroupNormalization."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import StringAttr

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Add, Multiply
from compiler_layer.dialects.ov.op import bool_attr, int_value
from compiler_layer.dialects.ov.reduce import MVN, GroupNormalization
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.replace import insert_before, reshape_before, take_over


def _decompose(op: GroupNormalization) -> None:
    batch, channels, *rest = shape_of(op.x)
    groups = int_value(op.num_groups)
    width = channels // groups * math.prod(rest)
    rows = reshape_before(op, op.x, (batch, groups, width))
    last = insert_before(op, Constant.inline(np.array([2], np.int64)))
    normal = MVN.make(
        [rows, last],
        normalize_variance=bool_attr(True),
        eps=op.epsilon,
        eps_mode=StringAttr("inside_sqrt"),
    )
    value = reshape_before(op, insert_before(op, normal), (batch, channels, *rest))
    scale, bias = (
        reshape_before(op, each, (1, channels, *(1 for _ in rest))) for each in (op.scale, op.bias)
    )
    scaled = insert_before(op, Multiply.make([value, scale]))
    take_over(op, insert_before(op, Add.make([scaled, bias])))


class DecomposeGroupNorm(OpPass):
    """Decompose GroupNormalization into MVN, a scale and a bias.

    Before:  %y = ov.GroupNormalization(%x : [B, C, …], %scale, %bias) {num_groups = G}
    After:   %n = ov.MVN(ov.Reshape(%x) : [B, G, C / G · …], -1)
             %y = ov.Add(ov.Multiply(ov.Reshape(%n) : [B, C, …], %scale), %bias)

    Requires: ``specialize-shapes``.
    """

    name = "decompose-group-norm"
    rewrites = ((GroupNormalization, _decompose),)
