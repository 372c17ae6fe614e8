"""Decomposition of GroupQueryAttention without its cache, which the caller locates.

Source: com.microsoft.GroupQueryAttention of ONNX Runtime.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.elementwise import Add, Multiply, Negative
from compiler_layer.dialects.ov.group_query_attention import GroupQueryAttention
from compiler_layer.dialects.ov.op import bool_attr, int_value
from compiler_layer.dialects.ov.shape import Broadcast
from compiler_layer.dialects.ov.types import element_of, shape_of

_PAIR = 2
"""Number of channels that an angle rotates."""

_REPEATS = StringAttr("bidirectional")


@dataclass(frozen=True, slots=True)
class GroupedAttention:
    """Writer of one op's parts; shapes of operands need not be known.

    Attributes:
        g: the graph that ops are added to.
        op: the attention.
        batch: number of sequences.
        tokens: number of new tokens of each sequence.
    """

    g: GraphBuilder
    op: GroupQueryAttention
    batch: int
    tokens: int

    def rotated(self, x: SSAValue, cos: SSAValue, sin: SSAValue) -> SSAValue:
        """Rotate pairs of the first channels, one pair for each angle.

        Args:
            x: queries or keys [B, heads, T, D].
            cos: cosines of each token's angles, from ``looked_up``.
            sin: sines of each token's angles, from ``looked_up``.
        """
        g, turned = self.g, shape_of(cos)[-1]
        turn = _neighbours if int_value(self.op.rotary_interleaved) else _halves
        if turned == self.op.width:
            return turn(g, x, cos, sin)
        found = turn(g, g.slice(x, 3, 0, turned), cos, sin)
        return g.concat([found, g.slice(x, 3, turned)], 3)

    def looked_up(self, name: str, positions: SSAValue) -> SSAValue:
        """Look up sines or cosines of tokens, for each rotated channel.

        Args:
            name: the op's table [rows, angles], "cos" or "sin".
            positions: i64 [B or 1, T].

        Returns:
            [B or 1, 1, T, 2 · angles], in the order of channels; layers share them.
        """
        g, table = self.g, self.op.other(name)
        assert table is not None  # infer() ensures it
        found = g.unsqueeze(g.gather(table, positions, 0), 1)
        if not int_value(self.op.rotary_interleaved):
            return g.concat([found, found], 3)
        each = g.unsqueeze(found, 4)
        return g.reshape(g.concat([each, each], 4), 0, 0, 0, _PAIR * shape_of(table)[-1])

    def attended(self, q: SSAValue, key: SSAValue, value: SSAValue, mask: SSAValue) -> SSAValue:
        """Write the attention, the op's first result.

        Args:
            q: [B, H, T, D], rotated if the op rotates.
            key: old and new rows, [B, Hkv, S, D], rotated like q.
            value: old and new rows, [B, Hkv, S, D].
            mask: additive, f32 [B, 1, T, S].

        Returns:
            [B, T, H · D].
        """
        g, op = self.g, self.op
        scale = g.convert(g.constant(np.array(op.factor, np.float32)), element_of(q))
        if op.attends_to_nothing:
            key, value = (self._behind_nothing(each) for each in (key, value))
            mask = g.concat([self._nothing(), self._for_sinks(mask)], 3)
        rows = (self._for_each_head(each) for each in (key, value))
        no = bool_attr(False)
        found = g.op(ScaledDotProductAttention, q, *rows, [mask, scale], causal=no)
        return g.reshape(g.transpose(found, 0, 2, 1, 3), 0, 0, int_value(op.num_heads) * op.width)

    def _for_each_head(self, rows: SSAValue) -> SSAValue:
        """Repeat K or V for the query heads that share them, as OpenVINO requires."""
        g, op = self.g, self.op
        heads, shared = int_value(op.num_heads), int_value(op.kv_num_heads)
        if shared == heads:
            return rows
        often = g.ints(1, 1, heads // shared, 1, 1)
        many = g.op(Broadcast, g.unsqueeze(rows, 2), often, mode=_REPEATS)
        return g.reshape(many, 0, heads, -1, op.width)

    def _behind_nothing(self, rows: SSAValue) -> SSAValue:
        """Prepend a row of zeros to K or V; its score is in the mask."""
        shape = (self.batch, int_value(self.op.kv_num_heads), 1, self.op.width)
        zeros = self.g.constant(np.zeros(shape, np.float32))
        if element_of(rows) != "f32":
            zeros = self.g.convert(zeros, element_of(rows))
        return self.g.concat([zeros, rows], 2)

    def _nothing(self) -> SSAValue:
        """Return the scores of the row of zeros, f32 [B, 1 or H, T, 1]."""
        g, sinks = self.g, self.op.other("head_sink")
        if sinks is None:
            return g.constant(np.zeros((self.batch, 1, self.tokens, 1), np.float32))
        each = g.reshape(sinks, 1, int_value(self.op.num_heads), 1, 1)
        if element_of(each) != "f32":
            each = g.convert(each, "f32")
        return g.op(Broadcast, each, g.ints(self.batch, 1, self.tokens, 1), mode=_REPEATS)

    def _for_sinks(self, mask: SSAValue) -> SSAValue:
        """Repeat the mask for each head, if each head has its own sink."""
        if self.op.other("head_sink") is None:
            return mask
        often = self.g.ints(1, int_value(self.op.num_heads), 1, 1)
        return self.g.op(Broadcast, mask, often, mode=_REPEATS)


def _halves(g: GraphBuilder, x: SSAValue, cos: SSAValue, sin: SSAValue) -> SSAValue:
    """Rotate pairs of channels n and n + angles, in the form that ``fuse-rope`` recognises."""
    angles = shape_of(cos)[-1] // _PAIR
    first, second = g.slice(x, 3, 0, angles), g.slice(x, 3, angles)
    return _turned(g, x, g.concat([g.op(Negative, second), first], 3), cos, sin)


def _neighbours(g: GraphBuilder, x: SSAValue, cos: SSAValue, sin: SSAValue) -> SSAValue:
    """Rotate pairs of channels 2n and 2n + 1."""
    turned = shape_of(cos)[-1]
    pairs = g.reshape(x, 0, 0, 0, turned // _PAIR, _PAIR)
    first, second = g.split(pairs, 4, [1, 1])
    crossed = g.concat([g.op(Negative, second), first], 4)
    return _turned(g, x, g.reshape(crossed, 0, 0, 0, turned), cos, sin)


def _turned(
    g: GraphBuilder, x: SSAValue, crossed: SSAValue, cos: SSAValue, sin: SSAValue
) -> SSAValue:
    return g.op(Add, g.op(Multiply, x, cos), g.op(Multiply, crossed, sin))
