"""Makes of an op of ONNX Runtime the attention that all passes know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Add, Maximum, Select, Subtract
from compiler_layer.dialects.ov.group_query_attention import GroupQueryAttention
from compiler_layer.dialects.ov.logic import Equal, Greater, LessEqual, LogicalAnd
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model
from compiler_layer.rewriting.grouped_attention import GroupedAttention


class _Decomposition:
    """What one op becomes.

    Args:
        model: gets new ops.
        op: static, of one sequence.
    """

    def __init__(self, model: Model, op: GroupQueryAttention) -> None:
        self._g = GraphBuilder(model, op)
        self._op = op
        self._tokens = shape_of(op.q)[2]
        self._rows = shape_of(op.past_key)[2]
        self._places = self._find_places()
        self._own = self._g.op(Maximum, self._places, self._g.constant(np.zeros(1, np.int32)))
        """The same, where padding counts as the first token."""

    def results(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """What the op gives."""
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
        """The row of each new token, i32 [T]; below 0 is padding before a short prompt."""
        g = self._g
        last = g.reshape(self._op.seqlens_k, -1)
        back = np.arange(self._tokens, dtype=np.int32) + 1 - self._tokens
        return g.op(Add, last, g.constant(back))

    def _positions(self) -> SSAValue:
        """Which angles are those of new tokens, i64 [1, T]."""
        given = self._op.other("position_ids")
        found = self._g.convert(self._own if given is None else given, "i64")
        return self._g.reshape(found, 1, self._tokens)

    def _stored(self, cache: SSAValue, rows: SSAValue) -> SSAValue:
        """A cache with new rows: where they go is not known before, so each is chosen or not.

        A product with 0 and 1 brings them there, which is exact.
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
        """To which rows each token attends, as numbers to add, f32 [1, 1, T, rows]."""
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
    """Tell why an op is still there."""
    return (
        f"over a batch of {shape_of(op.q)[0]}: each sequence fills its cache to a row of its own; "
        "make the model one with a batch of 1, and infer sequence by sequence"
    )


@dataclass(frozen=True)
class DecomposeGQA(ModulePass):
    """Makes of GroupQueryAttention what it consists of.

    Before:  %y, %K, %V = ov.GroupQueryAttention(%q, %k, %v, %past_key, %past_value, %seqlens_k, …)
    After:   %p = %seqlens_k + 1 - T + [0, 1 …]
             %K = ov.Select([0, 1 …] = %p, ov.RoPE(%k, %p), %past_key) ; %V likewise
             %y = ov.ScaledDotProductAttention(ov.RoPE(%q, %p), %K, %V, [0, 1 …] <= %p)

    Several conversations at once stay as they are, and are refused later (``gqa_refusal``).

    Requires: ``specialize-shapes``.

    Source: com.microsoft.GroupQueryAttention of ONNX Runtime; NPUW's DecomposeGQA (fact sheet npuw
    §a.3, step 11).
    """

    name = "decompose-gqa"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        for each in model.ops:
            if isinstance(each, GroupQueryAttention) and shape_of(each.q)[0] == 1:
                Rewriter.replace_op(each, [], _Decomposition(model, each).results())
