"""Check of inputs and outputs with a row for each token."""

from __future__ import annotations

from dataclasses import dataclass

from compiler_layer.dialects.ov.types import Shape, element_of, shape_of
from compiler_layer.model import Model, Port
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.tensors.token_inputs import TokenInput, check_slots, token_inputs
from npuw_layer.tensors.token_outputs import token_outputs


def close_row(model: Model, name: str, like: Shape) -> None:
    """Fix the open dimensions of an input's rows.

    Args:
        model: changed in place.
        name: name of an input [sequences, tokens, *row].
        like: a shape with the same rows; a shape of another rank has no effect.
    """
    value = model.find_input(name)
    assert value is not None  # the caller has checked it
    shape = shape_of(value)
    if len(like) == len(shape):
        row = (own if own >= 0 else other for own, other in zip(shape[2:], like[2:], strict=True))
        model.set_input_shapes({name: (*shape[:2], *row)})


def token_inputs_of(model: Model) -> tuple[TokenInput, ...]:
    """Return the inputs of a graph with a row for each token.

    Raises:
        ModelError: an input has another type or shape.
    """
    return token_inputs(map(_described, model.inputs))


def _described(port: Port) -> TensorInfo:
    return TensorInfo(port.name, element_of(port.value), shape_of(port.value))


@dataclass(frozen=True)
class CheckTokens(GraphPass):
    """Check type and shape of inputs and outputs that have a row for each token.

    Several conversations at once (``slots``) support only ids, positions and logits.

    Raises:
        ModelError: a tensor has another type or shape, or several conversations do not support it.
    """

    name = "check-tokens"

    slots: int = 1

    def _rewrite(self, model: Model) -> None:
        token_outputs(map(_described, model.outputs))
        inputs = token_inputs_of(model)
        if self.slots > 1:
            check_slots(inputs, [port.name for port in model.outputs])
