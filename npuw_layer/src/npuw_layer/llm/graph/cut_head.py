"""Removal of the LM head from a static model."""

from __future__ import annotations

from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.llm.graph.head import find_head, logits_of
from npuw_layer.tensors.names import EMBED, LOGITS


class CutHead(GraphPass):
    """Output hidden states in place of logits.

    Before:  %logits = ov.MatMul(%states, %vocabulary) ; return %logits
    After:   return %states ; the output is npuw_output_embed [1, tokens, channels]

    Prefill and all generate variants then share one model for the head (NPUW_LLM_SHARED_HEAD).

    Raises:
        NoHead: the logits are not a matmul of hidden states.
    """

    name = "cut-head"

    def _rewrite(self, model: Model) -> None:
        head = find_head(logits_of(model))
        others = [(port.name, port.value) for port in model.outputs if port.name != LOGITS]
        model.set_outputs([(EMBED, head.states(head.before(model))), *others])
        remove_dead_code(model)
