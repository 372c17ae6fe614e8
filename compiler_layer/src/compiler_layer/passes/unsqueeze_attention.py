"""Attention over a batch of 1, where the model has none."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.model import Model
from compiler_layer.rewriting.replace import insert_before, reshape_before, take_over


def _unsqueeze(op: ScaledDotProductAttention) -> None:
    given = [op.q, op.k, op.v]
    q, k, v = (reshape_before(op, value, (1, *shape_of(value))) for value in given)
    batched = ScaledDotProductAttention.make([q, k, v, [*op.mask_and_scale]], causal=op.causal)
    take_over(op, reshape_before(op, insert_before(op, batched), shape_of(op.output)))


@dataclass(frozen=True)
class UnsqueezeAttention(ModulePass):
    """Give attention of rank 3 a batch of 1.

    Before:  %y = ov.ScaledDotProductAttention(%q : [H, M, D], %k, %v, %mask)
    After:   %a = ov.ScaledDotProductAttention(ov.Reshape(%q) : [1, H, M, D], …, %mask)
             %y = ov.Reshape(%a) : [H, M, D]

    Exporters write vision encoders without a batch. A mask broadcasts as before.

    Requires: ``specialize-shapes``.
    """

    name = "unsqueeze-attention"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        for each in Model(op).ops:
            if isinstance(each, ScaledDotProductAttention) and len(shape_of(each.q)) == 3:
                _unsqueeze(each)
