"""Element-wise arithmetic, comparisons, and Boolean and bitwise ops in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import elementwise as ov
from compiler_layer.dialects.ov import logic
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import convert_values
from compiler_layer.reference.meaning import Array, means, means_each, wide


def _divide(a: Array, b: Array) -> Array:
    return a / b if a.dtype.kind == "f" else a // b


def _squared_difference(a: Array, b: Array) -> Array:
    difference = a - b
    return difference * difference


means_each(
    {
        ov.Sqrt: np.sqrt,
        ov.Exp: np.exp,
        ov.Log: np.log,
        ov.Sin: np.sin,
        ov.Cos: np.cos,
        ov.Atan: np.arctan,
        ov.Negative: np.negative,
        ov.Abs: np.abs,
        ov.Sign: np.sign,
        ov.Floor: np.floor,
        ov.Ceiling: np.ceil,
        ov.Add: np.add,
        ov.Subtract: np.subtract,
        ov.Multiply: np.multiply,
        ov.Divide: _divide,
        ov.Mod: np.fmod,
        ov.FloorMod: np.mod,
        ov.Power: np.power,
        ov.SquaredDifference: _squared_difference,
        ov.Minimum: np.minimum,
        ov.Maximum: np.maximum,
        logic.Equal: np.equal,
        logic.NotEqual: np.not_equal,
        logic.Less: np.less,
        logic.LessEqual: np.less_equal,
        logic.Greater: np.greater,
        logic.GreaterEqual: np.greater_equal,
        logic.LogicalAnd: np.logical_and,
        logic.LogicalOr: np.logical_or,
        logic.LogicalXor: np.logical_xor,
        logic.LogicalNot: np.logical_not,
        logic.BitwiseAnd: np.bitwise_and,
        logic.BitwiseOr: np.bitwise_or,
        logic.BitwiseXor: np.bitwise_xor,
        logic.BitwiseNot: np.bitwise_not,
        logic.BitwiseLeftShift: np.left_shift,
        logic.BitwiseRightShift: np.right_shift,
    }
)


@means(ov.Round)
def round_(op: ov.Round, x: Array) -> Array:
    """Round to integers, in the op's mode."""
    v = wide(x)
    if op.mode.data.lower() == "half_to_even":
        return np.round(v).astype(x.dtype)
    return (np.sign(v) * np.floor(np.abs(v) + 0.5)).astype(x.dtype)


@means(ov.Select)
def select(op: ov.Select, condition: Array, then: Array, otherwise: Array) -> Array:
    """Select elements by the condition."""
    del op
    return np.where(condition, then, otherwise)


@means(ov.Convert)
def convert(op: ov.Convert, x: Array) -> Array:
    """Convert element types; bf16 and f8 are stored as raw bits."""
    return convert_values(x, element_of(op.x), op.destination_type.data)
