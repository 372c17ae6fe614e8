"""An LM head that computes the logits of one token."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.dialects.ov.types import element_of
from compiler_layer.model import Model
from npuw_layer.errors import NoHead
from npuw_layer.llm.graph.head import find_head, logits_of
from npuw_layer.llm.graph.last_token import last_token


@dataclass(frozen=True)
class LastTokenHead(ModulePass):
    """Compute logits of the last token in use alone.

    Before:  %logits = ov.MatMul(%states, %vocabulary)
    After:   %logits = ov.MatMul(ov.MatMul(%npuw_last_token, %states), %vocabulary)

    Padding follows the last token in use, so the host says which token it is. A model whose logits
    are not a matmul of hidden states stays as it is, and computes all of them.
    """

    name = "last-token-head"

    tokens: int

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        try:
            head = find_head(logits_of(model))
        except NoHead:
            return
        which = last_token(model, self.tokens, element_of(head.readers[0].a))
        g = head.before(model)
        head.read(g, g.matmul(which, head.states(g), False))
        head.refresh_types()
        model.refresh_signature()
