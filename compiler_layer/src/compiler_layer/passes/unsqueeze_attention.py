"""Attention over a batch of 1, where the model has none."""

from __future__ import annotations

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.replace import insert_before, reshape_before, take_over


def _unsqueeze(op: ScaledDotProductAttention) -> None:
    if len(shape_of(op.q)) != 3:
        return
    given = [op.q, op.k, op.v]
    q, k, v = (reshape_before(op, value, (1, *shape_of(value))) for value in given)
    batched = ScaledDotProductAttention.make([q, k, v, [*op.mask_and_scale]], causal=op.causal)
    take_over(op, reshape_before(op, insert_before(op, batched), shape_of(op.output)))


class UnsqueezeAttention(OpPass):
    """Give attention of rank 3 a batch of 1.

    Before:  %y = ov.ScaledDotProductAttention(%q : [H, M, D], %k, %v, %mask)
    After:   %a = ov.ScaledDotProductAttention(ov.Reshape(%q) : [1, H, M, D], …, %mask)
             %y = ov.Reshape(%a) : [H, M, D]

    Exporters write vision encoders without a batch. A mask broadcasts as before.

    Requires: ``specialize-shapes``.
    """

    name = "unsqueeze-attention"
    rewrites = ((ScaledDotProductAttention, _unsqueeze),)
