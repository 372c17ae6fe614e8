"""Attention masks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, logic, shape

MASKED = -65504.0
"""Addend of the exporter for the score of a masked position: the lowest f16."""


def masks(
    g: GraphBuilder,
    attention_mask: SSAValue,
    past: SSAValue,
    ids: SSAValue,
    windows: Iterable[int | None],
) -> dict[int | None, SSAValue]:
    """Return the addends of scores, f32 [B, 1, M, S], for each window.

    Padding and later tokens are masked. With a window of w, a token attends to itself and the
    w - 1 rows before it.
    """
    past_rows, new_rows = _scalar(g, g.dim(past, 2)), _scalar(g, g.dim(ids, 1))
    total = g.op(elementwise.Add, past_rows, new_rows)

    def count(start: SSAValue) -> SSAValue:
        return g.op(shape.Range, start, total, g.scalar(1), output_type=StringAttr("i64"))

    keys = g.unsqueeze(count(g.scalar(0)), 0, 1, 2)
    queries = g.unsqueeze(count(past_rows), 0, 1, 3)
    causal = g.op(logic.LessEqual, keys, queries)
    real = g.unsqueeze(g.convert(attention_mask, "boolean"), 1, 2)
    zero, masked = (g.constant(np.array(v, np.float32)) for v in (0, MASKED))

    def additive(window: int | None) -> SSAValue:
        seen, name = causal, "attention_mask_additive"
        if window is not None:
            last_unseen = g.op(elementwise.Add, queries, g.ints(-window))
            recent = g.op(logic.Greater, keys, last_unseen)
            seen, name = g.op(logic.BitwiseAnd, recent, causal), f"{name}.{window}"
        allowed = g.op(logic.BitwiseAnd, seen, real)
        return g.op(elementwise.Select, allowed, zero, masked, name=name)

    return {window: additive(window) for window in dict.fromkeys(windows)}


def _scalar(g: GraphBuilder, value: SSAValue) -> SSAValue:
    return g.op(shape.Squeeze, value, [g.ints(0)])
