"""Static graphs of models with open dimensions, by the shapes of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from npuw_layer.errors import ModelError
from npuw_layer.kinds.static.source import GraphSource

if TYPE_CHECKING:
    from compiler_layer.model import Model

Shapes = Mapping[str, Sequence[int]]
"""Shapes by input name."""


def of_shapes(source: GraphSource, shapes: Shapes) -> GraphSource:
    """Return the source of the graph for given shapes of inputs, which takes its whole batch."""
    depends = {**source.depends, "SHAPES": repr(sorted((n, [*s]) for n, s in shapes.items()))}
    graph = partial(_reshape, source.graph, shapes)
    return replace(source, graph=graph, depends=depends, whole_batch=True)


def _reshape(read: Callable[[], Model], shapes: Shapes) -> Model:
    """Read a graph, and set the shapes of its inputs.

    Raises:
        ModelError: the graph has no such input, or does not accept these shapes.
    """
    # Imported here: a warm start, which compiles nothing, loads no graphs.
    from compiler_layer.errors import CompilerError
    from compiler_layer.rewriting.shapes import specialize_shapes

    model = read()
    unknown = shapes.keys() - {port.name for port in model.inputs}
    if unknown:
        raise ModelError(f"the model has no input {min(unknown)!r} to reshape")
    try:
        model.set_input_shapes({name: tuple(shape) for name, shape in shapes.items()})
        specialize_shapes(model)
    except CompilerError as error:
        raise ModelError(f"the model does not accept the shapes {dict(shapes)}: {error}") from error
    return model
