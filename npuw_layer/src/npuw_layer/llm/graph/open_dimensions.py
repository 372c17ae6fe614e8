"""Dimensions that an exporter left open, and that the rest of the graph tells.

``per_layer_inputs`` are added to what each layer makes of the embeddings, which has as many layers;
``hidden_states`` of a draft whose first product went to the target are as wide as those it gives.

Source: NPUW's ReshapeToStatic, which finds both alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.elementwise import Add
from compiler_layer.dialects.ov.types import Shape, shape_of
from compiler_layer.model import Model
from npuw_layer.llm.names import LAST_HIDDEN_STATE
from npuw_layer.traits.images.names import PER_LAYER
from npuw_layer.traits.trees.names import HIDDEN_STATES


def settle_dimensions(model: Model) -> None:
    """Close open dimensions of inputs that follow tokens, as far as the graph tells.

    Args:
        model: the stateful graph, changed in place.
    """
    for port in model.inputs:
        told = _TOLD.get(port.name)
        shape = told(model, port.value) if told is not None else shape_of(port.value)
        if shape != shape_of(port.value):
            model.set_input_shapes({port.name: shape})


def _of_terms(model: Model, value: SSAValue) -> Shape:
    """Rows that something is added to have its dimensions."""
    del model
    shape = shape_of(value)
    for use in value.uses:
        if isinstance(use.operation, Add):
            a, b = use.operation.a, use.operation.b
            shape = _closed(shape, shape_of(b if a is value else a))
    return shape


def _of_states(model: Model, value: SSAValue) -> Shape:
    """States that go in are as wide as those that come out."""
    shape = shape_of(value)
    given = [shape_of(port.value) for port in model.outputs if port.name == LAST_HIDDEN_STATE]
    return _closed(shape, given[0]) if given else shape


def _closed(shape: Shape, like: Shape) -> Shape:
    """A shape with the dimensions behind sequences and tokens of one like it, where it has none."""
    if len(like) != len(shape):
        return shape
    row = (own if own >= 0 else other for own, other in zip(shape[2:], like[2:], strict=True))
    return (*shape[:2], *row)


_TOLD: Mapping[str, Callable[[Model, SSAValue], Shape]] = {
    PER_LAYER: _of_terms,
    HIDDEN_STATES: _of_states,
}
