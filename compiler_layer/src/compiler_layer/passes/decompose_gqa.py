"""Makes of an op of ONNX Runtime the attention that all passes know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.elementwise import Add, Maximum, Multiply, Select, Subtract
from compiler_layer.dialects.ov.group_query_attention import GroupQueryAttention
from compiler_layer.dialects.ov.logic import Equal, Greater, LessEqual, LogicalAnd
from compiler_layer.dialects.ov.op import bool_attr, int_value
from compiler_layer.dialects.ov.shape import Broadcast
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model


class _Decomposition:
    """What one op becomes.

    Args:
        model: gets new ops.
        op: static, of one sequence.
    """

    def __init__(self, model: Model, op: GroupQueryAttention) -> None:
        self._g = GraphBuilder(model, op)
        self._op = op
        _, self._heads, self._tokens, self._width = shape_of(op.q)
        self._rows = shape_of(op.past_key)[2]
        self._places = self._find_places()
        self._own = self._g.op(Maximum, self._places, self._g.constant(np.zeros(1, np.int32)))
        """The same, where padding counts as the first token."""

    def results(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """What the op gives."""
        op, g = self._op, self._g
        q, k = op.q, op.k
        if int_value(op.do_rotary):
            angles = [self._angles(name) for name in ("cos", "sin")]
            q, k = (self._turned(x, *angles) for x in (op.q, op.k))
        key, value = self._stored(op.past_key, k), self._stored(op.past_value, op.v)
        scale = g.convert(g.constant(np.array(op.factor, np.float32)), element_of(q))
        rest, no = [self._mask(), scale], bool_attr(False)
        rows = (self._for_each_head(cache) for cache in (key, value))
        attended = g.op(ScaledDotProductAttention, q, *rows, rest, causal=no)
        by_token = g.transpose(attended, 0, 2, 1, 3)
        return g.reshape(by_token, 1, self._tokens, self._heads * self._width), key, value

    def _find_places(self) -> SSAValue:
        """The row of each new token, i32 [T]; below 0 is padding before a short prompt."""
        g = self._g
        last = g.reshape(self._op.seqlens_k, -1)
        back = np.arange(self._tokens, dtype=np.int32) + 1 - self._tokens
        return g.op(Add, last, g.constant(back))

    def _angles(self, name: str) -> SSAValue:
        """Rows of a table for all new tokens, [1, 1, T, angles]."""
        table, g = self._op.other(name), self._g
        assert table is not None  # infer() has seen to it
        return g.unsqueeze(g.gather(table, g.convert(self._own, "i64"), 0), 0, 1)

    def _turned(self, x: SSAValue, cos: SSAValue, sin: SSAValue) -> SSAValue:
        """Turn pairs of channels, as many as there are angles for."""
        g, angles = self._g, shape_of(cos)[-1]
        _, heads, tokens, width = shape_of(x)
        whole = width == 2 * angles
        paired, *rest = [x] if whole else g.split(x, 3, [2 * angles, width - 2 * angles])
        if int_value(self._op.rotary_interleaved):
            pairs = g.reshape(paired, 1, heads, tokens, angles, 2)
            a, b = (g.reshape(each, 1, heads, tokens, angles) for each in g.split(pairs, 4, [1, 1]))
        else:
            a, b = g.split(paired, 3, [angles, angles])
        left = g.op(Subtract, g.op(Multiply, a, cos), g.op(Multiply, b, sin))
        right = g.op(Add, g.op(Multiply, a, sin), g.op(Multiply, b, cos))
        if int_value(self._op.rotary_interleaved):
            both = g.concat([g.unsqueeze(left, 4), g.unsqueeze(right, 4)], 4)
            turned = g.reshape(both, 1, heads, tokens, 2 * angles)
        else:
            turned = g.concat([left, right], 3)
        return turned if whole else g.concat([turned, *rest], 3)

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

    def _for_each_head(self, cache: SSAValue) -> SSAValue:
        """A cache repeated for the query heads of a group, as OpenVINO wants it."""
        g = self._g
        _, shared, rows, width = shape_of(cache)
        if shared == self._heads:
            return cache
        target = g.ints(1, shared, self._heads // shared, rows, width)
        many = g.op(Broadcast, g.unsqueeze(cache, 2), target, mode=StringAttr("numpy"))
        return g.reshape(many, 1, self._heads, rows, width)

    def _mask(self) -> SSAValue:
        """To which rows each token attends, boolean [1, 1, T, rows]."""
        g = self._g
        index = g.constant(np.arange(self._rows, dtype=np.int32).reshape(1, -1))
        own = g.reshape(self._own, self._tokens, 1)
        allowed = g.op(LessEqual, index, own)
        if self._op.window is not None:
            first = g.op(Subtract, own, g.constant(np.full((1, 1), self._op.window, np.int32)))
            allowed = g.op(LogicalAnd, allowed, g.op(Greater, index, first))
        return g.unsqueeze(allowed, 0, 1)


@dataclass(frozen=True)
class DecomposeGQA(ModulePass):
    """Makes of GroupQueryAttention what it consists of.

    Before:  %y, %K, %V = ov.GroupQueryAttention(%q, %k, %v, %past_key, %past_value, %seqlens_k, …)
    After:   %p = %seqlens_k + 1 - T + [0, 1 …]
             %K = ov.Select([0, 1 …] = %p, ov.RoPE(%k, %p), %past_key) ; %V likewise
             %y = ov.ScaledDotProductAttention(ov.RoPE(%q, %p), %K, %V, [0, 1 …] <= %p)

    Several conversations at once stay as they are, and are refused later.

    Requires: ``specialize-shapes``.

    Source: com.microsoft.GroupQueryAttention of ONNX Runtime; NPUW's DecomposeGQA (fact sheet npuw
    §a.3, step 11).
    """

    name = "decompose-gqa"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        for each in list(model.body.ops):
            if isinstance(each, GroupQueryAttention) and shape_of(each.q)[0] == 1:
                Rewriter.replace_op(each, [], _Decomposition(model, each).results())
