"""Weightless programs: weights become inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.constant_value import Repeated
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.files import FileView
from compiler_layer.model import Model
from compiler_layer.partition.repeated.attributes import add_repeated_ids
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.weights import WeightRef

WeightName = Callable[[FileView, str], str | None]
"""Function that names the input of a weight, of a view and the type that the program reads; None
if the weight stays in the program."""


def place_in_file(view: FileView, element: str) -> str:
    """Name a weight by its file and its place there (``weights.WeightRef``)."""
    return WeightRef.of(view, element).name


@dataclass(frozen=True)
class SeparateWeights(GraphPass):
    """Move the weights out of the program: they become inputs.

    Before:  %w = ov.Constant #ov.file<"model.bin", 64, 2048, f16> ; %y = npu.matmul(%x, %w)
    After:   (…, %w: "vpux_ow_64_2048_f16_f16@model.bin") ; %y = npu.matmul(%x, %w)

    A blob then contains little more than its task lists, and all blobs of a model can share one
    copy of the weights. New inputs follow all existing ones; a weight used twice is one input.

    Args:
        name_of: the names of inputs.
    """

    name = "separate-weights"
    name_of: WeightName = place_in_file

    def _rewrite(self, model: Model) -> None:
        names = [port.name for port in model.inputs]
        known: dict[str, SSAValue] = {}
        repeated: dict[str, list[str]] = {}
        for each in model.ops:
            views, own = _views(each)
            if not isinstance(each, Constant) or not views:
                continue
            named = [self.name_of(view, element_of(each.output)) for view in views]
            every = [one for one in named if one is not None]
            if len(every) < len(named):
                continue
            name = every[own]
            if name not in known:
                known[name] = model.body.insert_arg(each.output.type, len(model.body.args))
                names.append(name)
            if len(every) > 1:
                repeated[every[0]] = every
            if known[name].type == each.output.type:
                Rewriter.replace_op(each, [], [known[name]])
        model.set_inputs(names)
        add_repeated_ids(model, list(repeated.values()))


def _views(op: Operation) -> tuple[list[FileView], int]:
    """Return the file views of a weight: one per layer if it is repeated; and its own one."""
    value = op.value.data if isinstance(op, Constant) else None
    held, own = (value.values, value.own) if isinstance(value, Repeated) else ((value,), 0)
    views = [each for each in held if isinstance(each, FileView)]
    return (views if len(views) == len(held) else []), own
