"""Source of a static model: its files, and its graph, read on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import STATIC_MODEL
from npuw_layer.errors import ModelError

if TYPE_CHECKING:
    from compiler_layer.model import Model


Shapes = Mapping[str, Sequence[int]]
"""Shapes by input name."""


@dataclass(frozen=True, slots=True)
class GraphSource:
    """A graph that is read on demand; a cached model's graph is never read.

    Attributes:
        path: an IR's ``.xml``.
        graph: reads the graph, which the compiler may modify.
        submodel: name of the submodel on devices and in logs.
        depends: facts besides the files that the graph depends on, for the cache key.
        whole_batch: whether the graph takes a whole batch, whatever NPU_BATCH_MODE says.
    """

    path: Path
    graph: Callable[[], Model]
    submodel: str = STATIC_MODEL
    depends: Mapping[str, str] = field(default_factory=dict[str, str])
    whole_batch: bool = False

    @staticmethod
    def whole(path: Path) -> GraphSource:
        """Return the source of a whole IR as one model."""
        return GraphSource(path, partial(_read, path))

    @property
    def name(self) -> str:
        """Name of the model in the cache."""
        whole = self.submodel == STATIC_MODEL
        return self.path.name if whole else f"{self.path.name} {self.submodel}"


def _read(path: Path) -> Model:
    # Imported here: a warm start, which compiles nothing, loads no graphs.
    from npuw_layer.storage.read_model import read_model

    return read_model(path)


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
