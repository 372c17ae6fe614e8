"""Static shapes of inputs."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.model import Model
from npuw_layer.llm.graph.check_tokens import token_inputs_of
from npuw_layer.llm.names import MASK


@dataclass(frozen=True)
class StaticInputs(ModulePass):
    """Give inputs static shapes, without carrying them through the graph.

    Before:  (%input_ids: tensor<?x?xi64>, %attention_mask: tensor<?x?xi64>)
    After:   (%input_ids: SLOTSxTOKENS, %attention_mask: SLOTSxPAST+TOKENS)

    ``specialize-shapes`` of the compiler carries the shapes through.
    """

    name = "static-inputs"

    tokens: int
    past: int
    slots: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        shapes = {port.name: port.shape(self.slots, self.tokens) for port in token_inputs_of(model)}
        model.set_input_shapes({**shapes, MASK: (self.slots, self.past + self.tokens)})
