"""Storage of a model's float weights in another float type: the formats ``fp16`` and ``fp32``.

Values are read only to check their range: a constant may have another type than its file, and is
converted when it is written.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.constant_value import FileAttr
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.errors import BadModel
from compiler_layer.files import FileView
from compiler_layer.model import Model
from compiler_layer.writers.stored_values import read_blocks

LARGEST_F16 = 65504.0


def store_floats(model: Model, targets: Mapping[str, str]) -> list[str]:
    """Change the types of float constants stored in files, in place.

    Args:
        model: ops keep their types; conversions are inserted and removed as needed.
        targets: the new type by a constant's present type; f32, f16 or bf16.

    Returns:
        The names of weights that are unchanged because they exceed the range of f16.

    Raises:
        BadModel: a weight to be stored as f16 is not finite, or cannot be read.
    """
    kept: list[str] = []
    for op in model.ops:
        if not isinstance(op, Constant) or not isinstance(op.value, FileAttr):
            continue
        target = targets.get(element_of(op.output))
        if target is None or not _is_a_weight(op):
            continue
        if target == "f16" and _largest(op) > LARGEST_F16:
            kept.append(_name(op))
        else:
            _store_as(model, op, op.value.data, target)
    return kept


def _is_a_weight(op: Constant) -> bool:
    """Return whether a constant's type is free to choose: f32, or used by conversions only."""
    uses = [use.operation for use in op.output.uses]
    return element_of(op.output) == "f32" or all(isinstance(user, Convert) for user in uses)


def _name(op: Constant) -> str:
    return op.friendly_name.removesuffix("_compressed")


def _largest(op: Constant) -> float:
    largest = 0.0
    for block in read_blocks(op, "f32"):
        largest = max(largest, float(np.abs(block).max()))
        if not np.isfinite(block).all():
            source = op.value.data.path if isinstance(op.value, FileAttr) else "the model"
            raise BadModel(source, "a weight is infinite or NaN", _name(op) or None)
    return largest


def _store_as(model: Model, op: Constant, view: FileView, target: str) -> None:
    """Replace a constant by one of another type, and its conversions by new ones."""
    own = element_of(op.output)
    users: list[Operation] = [use.operation for use in op.output.uses]
    wanted = {
        user: user.destination_type.data if isinstance(user, Convert) else own for user in users
    }
    name = _name(op)
    label = name if set(wanted.values()) == {target} or not name else f"{name}_compressed"
    g = GraphBuilder(model, before=op)
    stored = g.add(Constant.of_file(view, target, shape_of(op.output)), label).output
    converted: dict[str, SSAValue] = {target: stored}
    for user, element in wanted.items():
        if element not in converted:
            converted[element] = g.convert(stored, element, name)
        if isinstance(user, Convert):
            user.output.replace_all_uses_with(converted[element])
            Rewriter.erase_op(user)
    if own in converted:
        op.output.replace_all_uses_with(converted[own])
    Rewriter.erase_op(op)
