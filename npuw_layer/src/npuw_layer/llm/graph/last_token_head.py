"""LM head that computes the logits of one token."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.types import element_of, tensor
from compiler_layer.model import Model
from npuw_layer.errors import NoHead
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.llm.graph.head import find_head, logits_of
from npuw_layer.tensors.names import LAST_TOKEN


def last_token(model: Model, tokens: int, element: str, slots: int = 1) -> SSAValue:
    """Return the input LAST_TOKEN [slots, 1, tokens], adding it if the model has none.

    Args:
        model: changed in place.
        tokens: new tokens of a conversation.
        element: type of the values to multiply with the input.
        slots: number of conversations.
    """
    known = model.find_input(LAST_TOKEN)
    kind = tensor(element, (slots, 1, tokens))
    return model.add_input(LAST_TOKEN, kind) if known is None else known


@dataclass(frozen=True)
class LastTokenHead(GraphPass):
    """Compute logits of only the last token in use.

    Before:  %logits = ov.MatMul(%states, %vocabulary)
    After:   %logits = ov.MatMul(ov.MatMul(%npuw_last_token, %states), %vocabulary)

    Padding follows the last token in use, so the host marks this token. A model whose logits are
    not a matmul of hidden states stays as it is, and computes all logits.
    """

    name = "last-token-head"

    tokens: int
    slots: int = 1

    def _rewrite(self, model: Model) -> None:
        try:
            head = find_head(logits_of(model))
        except NoHead:
            return
        which = last_token(model, self.tokens, element_of(head.readers[0].a), self.slots)
        g = head.before(model)
        head.read(g, g.matmul(which, head.states(g), False))
        head.refresh_types()
        model.refresh_signature()
