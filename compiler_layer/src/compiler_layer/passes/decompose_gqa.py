"""Decomposition of ONNX Runtime's GroupQueryAttention into attention that all passes support."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Add, Maximum, Select, Subtract
from compiler_layer.dialects.ov.group_query_attention import GroupQueryAttention
from compiler_layer.dialects.ov.logic import Equal, Greater, LessEqual, LogicalAnd
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.grouped_attention import GroupedAttention


class _Decomposition:
    """Decomposition of one op.

    Args:
        model: model that new ops are added to.
        op: a static op over one sequence.
    """

    def __init__(self, model: Model, op: GroupQueryAttention) -> None:
        self._g = GraphBuilder(model, op)
        self._op = op
        self._tokens = shape_of(op.q)[2]
        self._rows = shape_of(op.past_key)[2]
        self._places = self._find_places()
        self._own = self._g.op(Maximum, self._places, self._g.constant(np.zeros(1, np.int32)))
        """The row of each new token, with padding moved to the first row."""

    def results(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Return the values that replace the op's results."""
        op = self._op
        parts = GroupedAttention(self._g, op, 1, self._tokens)
        q, k = op.q, op.k
        if int_value(op.do_rotary):
            positions = self._positions()
            cos, sin = (parts.looked_up(name, positions) for name in ("cos", "sin"))
            q, k = (parts.rotated(x, cos, sin) for x in (op.q, op.k))
        key, value = self._stored(op.past_key, k), self._stored(op.past_value, op.v)
        return parts.attended(q, key, value, self._mask()), key, value

    def _find_places(self) -> SSAValue:
        """Return the row of each new token, i32 [T]; below 0 for padding before a short prompt."""
        g = self._g
        last = g.reshape(self._op.seqlens_k, -1)
        back = np.arange(self._tokens, dtype=np.int32) + 1 - self._tokens
        return g.op(Add, last, g.constant(back))

    def _positions(self) -> SSAValue:
        """Return the positions of new tokens in the rotary tables, i64 [1, T]."""
        given = self._op.other("position_ids")
        found = self._g.convert(self._own if given is None else given, "i64")
        return self._g.reshape(found, 1, self._tokens)

    def _stored(self, cache: SSAValue, rows: SSAValue) -> SSAValue:
        """Return a cache with new rows, selected row by row: their places are known at run time.

        A matmul with 0 and 1 moves the new rows to their places, which is exact.
        """
        g, tokens = self._g, self._tokens
        index = g.constant(np.arange(self._rows, dtype=np.int32).reshape(-1, 1))
        here = g.op(Equal, index, g.reshape(self._places, 1, tokens))
        moved = rows
        if tokens > 1:
            placed = g.convert(here, element_of(rows))
            moved = g.matmul(g.unsqueeze(placed, 0, 1), rows, False)
            last = g.reshape(self._op.seqlens_k, 1, 1)
            first = g.op(Add, last, g.constant(np.full((1, 1), 1 - tokens, np.int32)))
            not_before = g.op(LessEqual, first, index)
            here = g.op(LogicalAnd, not_before, g.op(LessEqual, index, last))
        return g.op(Select, g.unsqueeze(here, 0, 1), moved, cache)

    def _mask(self) -> SSAValue:
        """Return the additive attention mask of the tokens, f32 [1, 1, T, rows]."""
        g = self._g
        index = g.constant(np.arange(self._rows, dtype=np.int32).reshape(1, -1))
        own = g.reshape(self._own, self._tokens, 1)
        allowed = g.op(LessEqual, index, own)
        if self._op.window is not None:
            first = g.op(Subtract, own, g.constant(np.full((1, 1), self._op.window, np.int32)))
            allowed = g.op(LogicalAnd, allowed, g.op(Greater, index, first))
        zero, least = (np.full((), each, np.float32) for each in (0, np.finfo(np.float32).min))
        passing = g.unsqueeze(allowed, 0, 1)
        return g.op(Select, passing, g.constant(zero), g.constant(least))


def gqa_refusal(op: GroupQueryAttention) -> str:
    """Return why an op has not been decomposed."""
    return (
        f"over a batch of {shape_of(op.q)[0]}: sequences fill their caches to different rows; "
        "convert the model with a batch of 1, and infer sequence by sequence"
    )


class DecomposeGQA(GraphPass):
    """Decompose ONNX Runtime's GroupQueryAttention into ops that all passes support.

    Before:  %y, %K, %V = ov.GroupQueryAttention(%q, %k, %v, %past_key, %past_value, %seqlens_k, …)
    After:   %p = %seqlens_k + 1 - T + [0, 1 …]
             %K = ov.Select([0, 1 …] = %p, ov.RoPE(%k, %p), %past_key) ; %V likewise
             %y = ov.ScaledDotProductAttention(ov.RoPE(%q, %p), %K, %V, [0, 1 …] <= %p)

    Batches of several sequences are not changed, and are rejected later (``gqa_refusal``).

    Requires: ``specialize-shapes``.

    Source: com.microsoft.GroupQueryAttention of ONNX Runtime; NPUW's DecomposeGQA
    (docs/reference/npuw.md#grouped-query-attention).
    """

    name = "decompose-gqa"

    def _rewrite(self, model: Model) -> None:
        for each in model.ops:
            if isinstance(each, GroupQueryAttention) and shape_of(each.q)[0] == 1:
                Rewriter.replace_op(each, [], _Decomposition(model, each).results())
