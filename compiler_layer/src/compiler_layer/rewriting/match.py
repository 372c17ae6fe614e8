"""Small questions that rewrite patterns ask about values."""

from __future__ import annotations

from typing import TypeVar

from xdsl.ir import Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.constant import Constant, constant_of
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FLOAT8, FLOATS, convert_values

OpT = TypeVar("OpT", bound=Operation)
OtherT = TypeVar("OtherT", bound=Operation)


def producer(value: SSAValue, kind: type[OpT]) -> OpT | None:
    """Give the op of a class that makes a value, or None."""
    owner = value.owner if isinstance(value, OpResult) else None
    return owner if isinstance(owner, kind) else None


def either(op: Operation, kind: type[OpT]) -> tuple[OpT, SSAValue] | None:
    """Of a commutative op, give the operand made by a class of op, and the other operand."""
    for mine, other in ((0, 1), (1, 0)):
        found = producer(op.operands[mine], kind)
        if found is not None:
            return found, op.operands[other]
    return None


def stored_constant(value: SSAValue) -> Constant | None:
    """Give the constant behind a value, seen through conversions between floats."""
    convert = producer(value, Convert)
    while convert is not None and _only_widens(convert):
        value = convert.x
        convert = producer(value, Convert)
    return constant_of(value)


def _only_widens(convert: Convert) -> bool:
    """Whether a conversion is between floats, and loses no more than computing with them does."""
    return element_of(convert.x) in FLOATS and element_of(convert.output) not in FLOAT8


def scalar_of(value: SSAValue) -> float | None:
    """Give a value that is a known single number, seen through conversions between floats."""
    constant = stored_constant(value)
    if constant is None or constant.is_repeated or any(d != 1 for d in shape_of(constant.output)):
        return None
    number = convert_values(constant.load(), element_of(constant.output), "f64")
    return float(number.reshape(-1)[0])
