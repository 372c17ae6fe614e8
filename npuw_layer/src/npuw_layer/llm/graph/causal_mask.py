"""Causal mask for a stateful decoder without a mask: tokens attend to those before them."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, logic, shape


def causal_mask(
    g: GraphBuilder, tokens: SSAValue, there: SSAValue, window: int | None = None
) -> SSAValue:
    """Write a causal mask that compares row indices, as exporters do.

    Args:
        g: builder at the place of the ops.
        tokens: new tokens [batch, new, ...].
        there: attention_mask i64 [batch, stored + new].
        window: maximum number of visible positions, including the token itself; None for all.

    Returns:
        f32 [batch, 1, new, stored + new]: 0 if visible, else the lowest number.
    """
    new, whole = g.dim(tokens, 1), g.dim(there, 1)
    zero, one, last = g.scalar(0), g.scalar(1), g.op(shape.Squeeze, whole, [g.ints(0)])
    first = g.op(shape.Squeeze, g.op(elementwise.Subtract, whole, new), [g.ints(0)])
    kind = StringAttr("i64")
    keys = g.unsqueeze(g.op(shape.Range, zero, last, one, output_type=kind), 0, 1, 2)
    queries = g.unsqueeze(g.op(shape.Range, first, last, one, output_type=kind), 0, 1, 3)
    passing = g.op(logic.LessEqual, keys, queries)
    if window is not None:
        begin = g.op(elementwise.Subtract, queries, g.ints(window))
        near = g.op(logic.Greater, keys, begin)
        passing = g.op(logic.LogicalAnd, passing, near)
    used = g.unsqueeze(g.convert(there, "boolean"), 1, 2)
    passing = g.op(logic.LogicalAnd, passing, used)
    least = g.constant(np.full((), np.finfo(np.float32).min, np.float32))
    return g.op(elementwise.Select, passing, g.constant(np.zeros((), np.float32)), least)
