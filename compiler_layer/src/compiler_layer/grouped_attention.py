"""What GroupQueryAttention computes, but for its cache: that may lie here or there.

Shapes need not be known: who takes the op apart may do so before or after they are settled.

Source: com.microsoft.GroupQueryAttention of ONNX Runtime.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.elementwise import Add, Multiply, Negative, Subtract
from compiler_layer.dialects.ov.group_query_attention import GroupQueryAttention
from compiler_layer.dialects.ov.op import bool_attr, int_value
from compiler_layer.dialects.ov.shape import Broadcast
from compiler_layer.dialects.ov.types import element_of, shape_of

_PAIR = 2
"""Channels that an angle turns."""


def rotated(
    g: GraphBuilder, op: GroupQueryAttention, x: SSAValue, cos: SSAValue, sin: SSAValue
) -> SSAValue:
    """Turn pairs of the first channels, as many as there are angles for.

    Args:
        g: where ops go.
        op: says which channels are a pair.
        x: queries or keys [B, heads, T, D].
        cos: of each token's angles [B or 1, 1, T, angles].
        sin: the same.
    """
    turned = _PAIR * shape_of(cos)[-1]
    turn = _neighbours if int_value(op.rotary_interleaved) else _halves
    if turned == op.width:
        return turn(g, x, cos, sin)
    found = turn(g, g.slice(x, 3, 0, turned), cos, sin)
    return g.concat([found, g.slice(x, 3, turned)], 3)


def _halves(g: GraphBuilder, x: SSAValue, cos: SSAValue, sin: SSAValue) -> SSAValue:
    """Channel n and n + angles are a pair; written as ``fuse-rope`` knows it."""
    angles = shape_of(cos)[-1]
    first, second = g.slice(x, 3, 0, angles), g.slice(x, 3, angles)
    crossed = g.concat([g.op(Negative, second), first], 3)
    by_cos, by_sin = (
        g.op(Multiply, each, g.concat([table, table], 3))
        for each, table in ((x, cos), (crossed, sin))
    )
    return g.op(Add, by_cos, by_sin)


def _neighbours(g: GraphBuilder, x: SSAValue, cos: SSAValue, sin: SSAValue) -> SSAValue:
    """Channel 2n and 2n + 1 are a pair."""
    angles = shape_of(cos)[-1]
    pairs = g.reshape(x, 0, 0, 0, angles, _PAIR)
    a, b = (g.reshape(each, 0, 0, 0, angles) for each in g.split(pairs, 4, [1, 1]))
    left = g.op(Subtract, g.op(Multiply, a, cos), g.op(Multiply, b, sin))
    right = g.op(Add, g.op(Multiply, a, sin), g.op(Multiply, b, cos))
    both = g.concat([g.unsqueeze(left, 4), g.unsqueeze(right, 4)], 4)
    return g.reshape(both, 0, 0, 0, _PAIR * angles)


def attended(
    g: GraphBuilder,
    op: GroupQueryAttention,
    q: SSAValue,
    rows: tuple[SSAValue, SSAValue],
    mask: SSAValue,
) -> SSAValue:
    """What the op's first result is.

    Args:
        g: where ops go.
        op: says what scores are multiplied with.
        q: [B, H, T, D], turned if it is to be.
        rows: all K and V that there are, [B, Hkv, S, D].
        mask: which of them each token attends to, as attention takes it.

    Returns:
        [B, T, H · D].
    """
    scale = g.convert(g.constant(np.array(op.factor, np.float32)), element_of(q))
    key, value = (_for_each_head(g, op, each) for each in rows)
    found = g.op(ScaledDotProductAttention, q, key, value, [mask, scale], causal=bool_attr(False))
    return g.reshape(g.transpose(found, 0, 2, 1, 3), 0, 0, int_value(op.num_heads) * op.width)


def _for_each_head(g: GraphBuilder, op: GroupQueryAttention, rows: SSAValue) -> SSAValue:
    """K or V repeated for the query heads of a group, as OpenVINO wants it."""
    heads, shared = int_value(op.num_heads), int_value(op.kv_num_heads)
    if shared == heads:
        return rows
    often, mode = g.ints(1, 1, heads // shared, 1, 1), StringAttr("bidirectional")
    many = g.op(Broadcast, g.unsqueeze(rows, 2), often, mode=mode)
    return g.reshape(many, 0, heads, -1, op.width)
