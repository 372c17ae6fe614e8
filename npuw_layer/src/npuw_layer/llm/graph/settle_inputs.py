"""Inputs that have a row for each token, and their shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.elementwise import Add
from compiler_layer.dialects.ov.types import Shape, element_of, shape_of
from compiler_layer.model import Model, Port
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.llm.names import HIDDEN_STATES, LAST_HIDDEN_STATE, PER_LAYER
from npuw_layer.llm.request.token_inputs import TokenInput, check_slots, token_inputs
from npuw_layer.llm.request.token_outputs import token_outputs


def _of_terms(model: Model, value: SSAValue) -> Shape:
    """Return the shape of rows, whose dimensions are those of the terms added to them."""
    del model
    shape = shape_of(value)
    for use in value.uses:
        if isinstance(use.operation, Add):
            a, b = use.operation.a, use.operation.b
            shape = _closed(shape, shape_of(b if a is value else a))
    return shape


def _of_states(model: Model, value: SSAValue) -> Shape:
    """Return the shape of input states, which are as wide as the output states."""
    shape = shape_of(value)
    given = [shape_of(port.value) for port in model.outputs if port.name == LAST_HIDDEN_STATE]
    return _closed(shape, given[0]) if given else shape


def _closed(shape: Shape, like: Shape) -> Shape:
    """Return a shape whose open dimensions of a row are those of a similar shape."""
    if len(like) != len(shape):
        return shape
    row = (own if own >= 0 else other for own, other in zip(shape[2:], like[2:], strict=True))
    return (*shape[:2], *row)


_TOLD: Mapping[str, Callable[[Model, SSAValue], Shape]] = {
    PER_LAYER: _of_terms,
    HIDDEN_STATES: _of_states,
}


def settle_dimensions(model: Model) -> None:
    """Close open dimensions of inputs, as far as the graph determines them."""
    for port in model.inputs:
        told = _TOLD.get(port.name)
        shape = told(model, port.value) if told is not None else shape_of(port.value)
        if shape != shape_of(port.value):
            model.set_input_shapes({port.name: shape})


def token_inputs_of(model: Model) -> tuple[TokenInput, ...]:
    """Return the inputs of a graph that have a row for each token.

    Raises:
        ModelError: one has another type or shape.
    """
    return token_inputs(map(_described, model.inputs))


def _described(port: Port) -> TensorInfo:
    return TensorInfo(port.name, element_of(port.value), shape_of(port.value))


@dataclass(frozen=True)
class SettleInputs(GraphPass):
    """Close open dimensions of inputs that have a row for each token, and check their types.

    Before:  %per_layer_inputs : tensor<?x?x?x8xf32> ; ov.Add(%per_layer_inputs, %h : ?x?x30x8)
    After:   %per_layer_inputs : tensor<?x?x30x8xf32>

    ``per_layer_inputs`` are added to a projection of the embeddings with as many layers. The
    ``hidden_states`` of a draft whose first matmul went to the target are as wide as the states
    that the draft gives. Several conversations at once (``slots``) give ids and positions, and take
    logits, nothing else.

    Raises:
        ModelError: an input or output that follows tokens has another type or shape, or cannot be
            shared by conversations.
    Source: NPUW's ReshapeToStatic, which closes the same dimensions.
    """

    name = "settle-inputs"

    slots: int = 1

    def _rewrite(self, model: Model) -> None:
        token_outputs(map(_described, model.outputs))
        settle_dimensions(model)
        inputs = token_inputs_of(model)
        if self.slots > 1:
            check_slots(inputs, [port.name for port in model.outputs])
