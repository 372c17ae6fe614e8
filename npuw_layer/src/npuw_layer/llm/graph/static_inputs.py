"""Static shapes of inputs."""

from __future__ import annotations

from dataclasses import dataclass

from compiler_layer.model import Model
from npuw_layer.llm.graph.check_tokens import token_inputs_of
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.tensors.names import MASK


@dataclass(frozen=True)
class StaticInputs(GraphPass):
    """Set static shapes of inputs, without propagating them through the graph.

    Before:  (%input_ids: tensor<?x?xi64>, %attention_mask: tensor<?x?xi64>)
    After:   (%input_ids: SLOTSxTOKENS, %attention_mask: SLOTSxPAST+TOKENS)

    The compiler's ``specialize-shapes`` propagates the shapes.
    """

    name = "static-inputs"

    tokens: int
    past: int
    slots: int = 1

    def _rewrite(self, model: Model) -> None:
        shapes = {port.name: port.shape(self.slots, self.tokens) for port in token_inputs_of(model)}
        model.set_input_shapes({**shapes, MASK: (self.slots, self.past + self.tokens)})
