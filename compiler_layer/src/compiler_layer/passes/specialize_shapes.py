"""Specialisation of a model to the shapes of its inputs and variables."""

from __future__ import annotations

from dataclasses import dataclass

from compiler_layer.dialects.ov.types import Shape
from compiler_layer.errors import NotPeriodic
from compiler_layer.model import Model
from compiler_layer.partition.repeated.attributes import repeated_ids
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.shapes import parse_shapes, specialize_shapes


def _of_what_is_there(model: Model, shapes: dict[str, Shape]) -> dict[str, Shape]:
    """Return the shapes without those of layers that a folded model omits; these must be equal."""
    for first, *others in repeated_ids(model):
        if any(shapes[name] != shapes.get(first) for name in others if name in shapes):
            raise NotPeriodic(f"{first!r} has a shape that differs from those of other layers")
    there = {port.name for port in model.inputs} | {v.name for v in model.variables()}
    left_out = {name for group in repeated_ids(model) for name in group} - there
    return {name: shape for name, shape in shapes.items() if name not in left_out}


@dataclass(frozen=True)
class SpecializeShapes(GraphPass):
    """Make every shape static.

    Before:  %n = ov.ShapeOf(%x : tensor<?x?xi64>) ; %z = ov.Broadcast(%0, %n)
    After:   %z = ov.Broadcast(%0, [1, 128]) : tensor<1x128xi64>       (with shapes "x=1x128")

    Chains of ShapeOf, Gather, Concat … that compute shapes become constants. Shapes that depend on
    data stay dynamic: see ``dense-experts``.

    Args:
        shapes: shapes of inputs and variables to set first, as ``name=1x128,…``.

    Raises:
        CompilerUsageError: shapes of inputs are missing; the message names these inputs.
        NotPeriodic: the model is folded, and ``shapes`` differ between its layers.
    """

    name = "specialize-shapes"
    shapes: str = ""

    def _rewrite(self, model: Model) -> None:
        model.set_input_shapes(_of_what_is_there(model, parse_shapes(self.shapes)))
        specialize_shapes(model)
