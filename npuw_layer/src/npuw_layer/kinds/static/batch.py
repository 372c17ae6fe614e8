"""Models that run item by item of a batch, and the graph of one item (NPU_BATCH_MODE).

A batch is the first dimension of all inputs and outputs, where the model has no state. As in the
original, such a model is compiled for one item, and an inference goes through the items. Whether a
model is one is seen in its file: a warm start reads no graph.

The original decides likewise (its plugin's transformations.cpp), and takes static batches item by
item as well unless told otherwise; here the compiler takes these, unless PLUGIN is asked for. That
items do not depend on one another nobody checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.api.model_port import OPEN
from npuw_layer.errors import ModelError, OptionError
from npuw_layer.kinds.static.source import GraphSource
from npuw_layer.options import Options
from npuw_layer.storage.ir_ends import Dims, Ends, ir_ends

if TYPE_CHECKING:
    from compiler_layer.model import Model

_NAME = "NPU_BATCH_MODE"


def batch_of(path: Path, options: Options) -> int | None:
    """Tell what batch of a model is run item by item.

    Args:
        path: an IR's ``.xml``; folders of another kind are never run so.
        options: NPU_BATCH_MODE, and which way the model goes.

    Returns:
        The batch; ``OPEN`` if inferences decide; None if the compiler takes the model as it is.

    Raises:
        OptionError: NPU_BATCH_MODE asks for what cannot be; it names the input or output.
    """
    if options.use_npuw:
        return None  # PLUGIN is refused there (``kinds.routing``)
    mode = options.batch_mode
    ends = ir_ends(path) if path.suffix == ".xml" else Ends()
    if mode == "COMPILER":
        _check_closed(ends)
        return None
    batch, problem = _common(ends)
    if mode == "PLUGIN" and problem:
        raise OptionError(f"{_NAME} = PLUGIN: {problem}")
    by_items = not problem and (batch == OPEN or mode == "PLUGIN")
    return batch if by_items and batch != 1 else None


def of_one_item(source: GraphSource, batch: int) -> GraphSource:
    """Give the source of the graph that takes one item."""
    depends = {**source.depends, _NAME: str(batch)}
    return replace(source, graph=partial(_one_item, source.graph), depends=depends)


def _common(ends: Ends) -> tuple[int, str]:
    """The batch that all inputs and outputs have in common, or why there is none."""
    every = [*_named("input", ends.inputs), *_named("output", ends.outputs)]
    if not ends.inputs or not ends.outputs:
        return 1, "the model has no inputs and outputs"
    if ends.has_state:
        return 1, "the model has variables, which items would share; leave it out"
    batches: dict[int, str] = {}
    for what, dims in every:
        if not dims:
            return 1, f"{what} is a scalar, without a batch"
        if any(map(_is_open, dims[1:])):
            return 1, f"{what} is [{','.join(dims)}]; no dimension but the first may be open"
        batches.setdefault(OPEN if _is_open(dims[0]) else int(dims[0]), what)
    if len(batches) > 1:
        said = " and ".join(f"{what} {_written(batch)}" for batch, what in batches.items())
        return 1, f"all inputs and outputs have one batch as their first dimension; of {said}"
    return next(iter(batches)), ""


def _named(side: str, ends: dict[str, Dims]) -> list[tuple[str, Dims]]:
    return [(f"{side} {name!r}", dims) for name, dims in ends.items()]


def _check_closed(ends: Ends) -> None:
    """See that the compiler is not asked for a batch of any size.

    Raises:
        OptionError: it is.
    """
    for name, dims in ends.inputs.items():
        if dims and _is_open(dims[0]):
            raise OptionError(
                f"{_NAME} = COMPILER: input {name!r} is [{','.join(dims)}], and programs have one "
                "batch; reshape the model, or let items be run one by one (AUTO)"
            )


def _is_open(dim: str) -> bool:
    return not dim.isdecimal()


def _written(batch: int) -> str:
    return "it is open" if batch == OPEN else f"it is {batch}"


def _one_item(read: Callable[[], Model]) -> Model:
    """Read a graph, and let it take one item.

    Raises:
        ModelError: it does not give one item then.
    """
    # Imported here: a warm start, which compiles nothing, loads no graphs.
    from compiler_layer.dialects.ov.types import shape_of
    from compiler_layer.errors import CompilerError
    from compiler_layer.rewriting.shapes import specialize_shapes

    model = read()
    try:
        model.set_input_shapes({port.name: (1, *shape_of(port.value)[1:]) for port in model.inputs})
        specialize_shapes(model)
    except CompilerError as error:
        raise ModelError(
            f"it cannot take a batch item by item ({_NAME}): {error}; reshape it to one batch"
        ) from error
    for port in model.outputs:
        shape = shape_of(port.value)
        if not shape or shape[0] != 1:
            raise ModelError(
                f"output {port.name!r} is {list(shape)} for one item, so that its first dimension "
                f"is no batch ({_NAME}); reshape the model to one batch"
            )
    return model
