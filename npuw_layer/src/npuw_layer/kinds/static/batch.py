"""Choice of models that run item by item of a batch (NPU_BATCH_MODE), and the graph of one item.

The batch is the first dimension of all inputs and outputs of a model without state. As in
OpenVINO's NPU plugin, such a model is compiled for one item, and an inference loops over the items.
The model's file shows whether a batch is possible; a warm start reads no graph.

The plugin uses the same criteria (its transformations.cpp), but by default runs static batches item
by item, too. Here the compiler takes static batches, unless the mode is PLUGIN. Nothing checks that
items are independent.
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
    """Return the batch that is run item by item.

    Args:
        path: an IR's ``.xml``; a folder never runs item by item.
        options: NPU_BATCH_MODE, and whether the model goes through NPUW.

    Returns:
        The batch; ``OPEN`` if each inference decides; None if the compiler takes the model as is.

    Raises:
        OptionError: NPU_BATCH_MODE is impossible for an input or output, which the error names.
    """
    if options.use_npuw:
        return None  # ``check_way`` rejects PLUGIN there
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
    """Return the source of the graph of one item."""
    depends = {**source.depends, _NAME: str(batch)}
    return replace(source, graph=partial(_one_item, source.graph), depends=depends)


def _common(ends: Ends) -> tuple[int, str]:
    """Return the common batch of all inputs and outputs, and the problem if they have none."""
    every = [*_named("input", ends.inputs), *_named("output", ends.outputs)]
    if not ends.inputs or not ends.outputs:
        return 1, "the model has no inputs and outputs"
    if ends.has_state:
        return 1, "the model has variables, which items would share; leave the option out"
    batches: dict[int, str] = {}
    for what, dims in every:
        if not dims:
            return 1, f"{what} is a scalar and has no batch"
        if any(map(_is_open, dims[1:])):
            return 1, f"{what} is [{','.join(dims)}]; only the first dimension may be open"
        batches.setdefault(OPEN if _is_open(dims[0]) else int(dims[0]), what)
    if len(batches) > 1:
        listed = " and ".join(f"{what} has {_written(batch)}" for batch, what in batches.items())
        return 1, f"the first dimensions, the batches, differ: {listed}"
    return next(iter(batches)), ""


def _named(side: str, ends: dict[str, Dims]) -> list[tuple[str, Dims]]:
    return [(f"{side} {name!r}", dims) for name, dims in ends.items()]


def _check_closed(ends: Ends) -> None:
    """Check that COMPILER is not combined with an open batch.

    Raises:
        OptionError: the batch of an input is open.
    """
    for name, dims in ends.inputs.items():
        if dims and _is_open(dims[0]):
            raise OptionError(
                f"{_NAME} = COMPILER: input {name!r} is [{','.join(dims)}], but programs have a "
                "fixed batch; reshape the model, or run items one by one (AUTO)"
            )


def _is_open(dim: str) -> bool:
    return not dim.isdecimal()


def _written(batch: int) -> str:
    return "an open one" if batch == OPEN else f"{batch}"


def _one_item(read: Callable[[], Model]) -> Model:
    """Read a graph, and set the batch of its inputs to one item.

    Raises:
        ModelError: the graph cannot take one item, or does not return one.
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
            f"the model cannot run item by item ({_NAME}): {error}; reshape it to a fixed batch"
        ) from error
    for port in model.outputs:
        shape = shape_of(port.value)
        if not shape or shape[0] != 1:
            raise ModelError(
                f"output {port.name!r} is {list(shape)} for one item, so its first dimension is "
                f"not the batch ({_NAME}); reshape the model to a fixed batch"
            )
    return model
