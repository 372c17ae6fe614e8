"""Inputs and outputs that have a row for each token."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model, Port
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.llm.request.token_inputs import TokenInput, check_slots, token_inputs
from npuw_layer.llm.request.token_outputs import token_outputs


def token_inputs_of(model: Model) -> tuple[TokenInput, ...]:
    """Return the inputs of a graph that have a row for each token.

    Raises:
        ModelError: one has another type or shape.
    """
    return token_inputs(map(_described, model.inputs))


def _described(port: Port) -> TensorInfo:
    return TensorInfo(port.name, element_of(port.value), shape_of(port.value))


@dataclass(frozen=True)
class CheckTokens(ModulePass):
    """Check type and shape of inputs and outputs that have a row for each token.

    Several conversations at once (``slots``) give ids and positions, and take logits, nothing else.

    Raises:
        ModelError: one has another type or shape, or cannot be shared by conversations.
    """

    name = "check-tokens"

    slots: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check the module; it stays as it is."""
        del ctx
        model = Model(op)
        token_outputs(map(_described, model.outputs))
        inputs = token_inputs_of(model)
        if self.slots > 1:
            check_slots(inputs, [port.name for port in model.outputs])
