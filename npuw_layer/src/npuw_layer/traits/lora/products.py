"""Which products of a model can be adapted, and what they are called."""

from __future__ import annotations

from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, int_value
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.model import Model

_ENDS = "MatMul"
"""With which NPUW wants the names of adapted products to end; those of exported IRs do."""


def products(model: Model) -> dict[str, MatMul]:
    """Find the products y = x Wᵀ (or x W) with a matrix of known size, by name, in order."""
    found: dict[str, MatMul] = {}
    for op in model.body.ops:
        if isinstance(op, MatMul) and NAME_ATTRIBUTE in op.attributes and _is_adaptable(op):
            found.setdefault(_name(op), op)
    return found


def widths(op: MatMul) -> tuple[int, int]:
    """The width of what a product takes, and of what it gives."""
    rows, columns = shape_of(op.b)
    return (columns, rows) if int_value(op.transpose_b) else (rows, columns)


def _is_adaptable(op: MatMul) -> bool:
    shape = shape_of(op.b)
    plain = not int_value(op.transpose_a) and len(shape_of(op.a)) > 1
    return plain and len(shape) == 2 and min(shape) > 0


def _name(op: MatMul) -> str:
    name = op.friendly_name
    return name if name.endswith(_ENDS) else f"{name}/{_ENDS}"
