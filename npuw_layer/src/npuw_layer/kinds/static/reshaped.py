"""Static graphs of models with open dimensions, by the shapes of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import index
from typing import TYPE_CHECKING

from npuw_layer.errors import ModelError
from npuw_layer.kinds.static.source import GraphSource

if TYPE_CHECKING:
    from compiler_layer.model import Model

Shapes = Mapping[str, Sequence[int]]
"""Shapes by input name."""


def of_shapes(source: GraphSource, shapes: Shapes) -> GraphSource:
    """Return the source of the graph for given shapes of inputs, which takes its whole batch.

    Raises:
        ModelError: the shapes are not integers by name.
    """
    shapes = _checked(shapes)
    depends = {**source.depends, "SHAPES": repr(sorted(shapes.items()))}
    graph = partial(_reshape, source.graph, shapes)
    return replace(source, graph=graph, depends=depends, whole_batch=True)


def _checked(shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """Return a caller's shapes as plain integers, which a cache key can name."""
    try:
        return {str(name): tuple(map(index, shape)) for name, shape in shapes.items()}
    except (AttributeError, TypeError):
        raise ModelError(
            f"the shapes {shapes!r} are not integers by input name; pass e.g. "
            "{'pixel_values': [1, 3, 224, 224]}"
        ) from None


def _reshape(read: Callable[[], Model], shapes: Mapping[str, tuple[int, ...]]) -> Model:
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
        model.set_input_shapes(shapes)
        specialize_shapes(model)
    except (CompilerError, ValueError) as error:  # ValueError: a dimension is too large
        raise ModelError(f"the model does not accept the shapes {shapes}: {error}") from error
    return model
