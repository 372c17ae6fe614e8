"""Matmuls of a model that can be adapted, and their names."""

from __future__ import annotations

from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, int_value
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.model import Model

_ENDS = "MatMul"
"""Suffix that NPUW requires of names of adapted matmuls; names in exported IRs have it."""


def adaptable_matmuls(model: Model) -> dict[str, MatMul]:
    """Return the matmuls y = x Wᵀ (or x W) with a matrix of known size, by name, in order."""
    found: dict[str, MatMul] = {}
    for op in model.body.ops:
        if isinstance(op, MatMul) and NAME_ATTRIBUTE in op.attributes and _is_adaptable(op):
            found.setdefault(_name(op), op)
    return found


def widths(op: MatMul) -> tuple[int, int]:
    """Return the widths of a matmul's input and output."""
    rows, columns = shape_of(op.b)
    return (columns, rows) if int_value(op.transpose_b) else (rows, columns)


def _is_adaptable(op: MatMul) -> bool:
    shape = shape_of(op.b)
    plain = not int_value(op.transpose_a) and len(shape_of(op.a)) > 1
    return plain and len(shape) == 2 and min(shape) > 0


def _name(op: MatMul) -> str:
    name = op.friendly_name
    return name if name.endswith(_ENDS) else f"{name}/{_ENDS}"
