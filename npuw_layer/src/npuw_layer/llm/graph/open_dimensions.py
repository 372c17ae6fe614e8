"""Dimensions that an exporter left open and that the rest of the graph determines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from compiler_layer.dialects.ov.elementwise import Add
from compiler_layer.dialects.ov.types import Shape, shape_of
from compiler_layer.model import Model
from npuw_layer.llm.names import HIDDEN_STATES, LAST_HIDDEN_STATE, PER_LAYER


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


@dataclass(frozen=True)
class SettleDimensions(ModulePass):
    """Close open dimensions of inputs that have a row for each token.

    Before:  %per_layer_inputs : tensor<?x?x?x8xf32> ; ov.Add(%per_layer_inputs, %h : ?x?x30x8)
    After:   %per_layer_inputs : tensor<?x?x30x8xf32>

    ``per_layer_inputs`` are added to a projection of the embeddings with as many layers. The
    ``hidden_states`` of a draft whose first matmul went to the target are as wide as the states
    that the draft gives.

    Source: NPUW's ReshapeToStatic, which finds both alike.
    """

    name = "settle-dimensions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        for port in model.inputs:
            told = _TOLD.get(port.name)
            shape = told(model, port.value) if told is not None else shape_of(port.value)
            if shape != shape_of(port.value):
                model.set_input_shapes({port.name: shape})
