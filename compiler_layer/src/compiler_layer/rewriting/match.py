"""Queries of rewrite patterns about values."""

from __future__ import annotations

from typing import TypeVar

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.activation import Swish
from compiler_layer.dialects.ov.constant import Constant, constant_of
from compiler_layer.dialects.ov.elementwise import Binary, Convert, Select, Unary
from compiler_layer.dialects.ov.logic import Comparison
from compiler_layer.dialects.ov.shape import Reshape, Squeeze, Unsqueeze
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FLOAT8, FLOATS, convert_values

OpT = TypeVar("OpT", bound=Operation)

ELEMENTWISE = Unary | Binary | Comparison | Select | Convert | Swish
RESHAPES = Reshape | Squeeze | Unsqueeze


def owner_of(value: SSAValue) -> Operation | None:
    """Return the op that defines a value; None for an input."""
    return value.op if isinstance(value, OpResult) else None


def producer(value: SSAValue, kind: type[OpT]) -> OpT | None:
    """Return the op of a class that defines a value, or None."""
    owner = owner_of(value)
    return owner if isinstance(owner, kind) else None


def unconverted(value: SSAValue) -> SSAValue:
    """Return the value before all conversions."""
    while (convert := producer(value, Convert)) is not None:
        value = convert.x
    return value


def either(op: Operation, kind: type[OpT]) -> tuple[OpT, SSAValue] | None:
    """Find the op of a class that defines an operand of a commutative op; add the other operand."""
    for mine, other in ((0, 1), (1, 0)):
        found = producer(op.operands[mine], kind)
        if found is not None:
            return found, op.operands[other]
    return None


def is_stored(value: SSAValue) -> bool:
    """Return whether a value lies in memory before the model runs: a constant or an input."""
    return isinstance(value, BlockArgument) or constant_of(value) is not None


def stored_constant(value: SSAValue) -> Constant | None:
    """Return the constant that defines a value, apart from conversions between floats."""
    return constant_of(_before_widening(value))


def stored_value(value: SSAValue) -> SSAValue | None:
    """Return the constant or input that is a value, apart from conversions between floats.

    Weights are inputs in NPUW's submodels, and in weightless models.
    """
    stored = _before_widening(value)
    return stored if is_stored(stored) else None


def _before_widening(value: SSAValue) -> SSAValue:
    """Return the value before conversions between floats, none to an 8-bit float."""
    while (convert := producer(value, Convert)) is not None:
        if element_of(convert.x) not in FLOATS or element_of(value) in FLOAT8:
            break
        value = convert.x
    return value


def scalar_of(value: SSAValue) -> float | None:
    """Return the number of a constant with one element, apart from conversions between floats."""
    constant = stored_constant(value)
    if constant is None or constant.is_repeated or any(d != 1 for d in shape_of(constant.output)):
        return None
    number = convert_values(constant.load(), element_of(constant.output), "f64")
    return float(number.reshape(-1)[0])
