"""Element-wise ops in numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler_layer.dialects.ov import elementwise as ov
from compiler_layer.dialects.ov.convert import convert_values
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import NUMPY, element_of
from compiler_layer.reference.meaning import Array, means, wide


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _swish(x: Array, beta: Array | float = 1.0) -> Array:
    return x * _sigmoid(x * np.asarray(beta, x.dtype))


def _divide(a: Array, b: Array) -> Array:
    return a / b if a.dtype.kind == "f" else a // b


_FUNCTIONS: dict[type[OvOp], Callable[..., Array]] = {
    ov.Sqrt: np.sqrt,
    ov.Exp: np.exp,
    ov.Sin: np.sin,
    ov.Cos: np.cos,
    ov.Tanh: np.tanh,
    ov.Sigmoid: _sigmoid,
    ov.Swish: _swish,
    ov.Negative: np.negative,
    ov.Abs: np.abs,
    ov.Floor: np.floor,
    ov.Add: np.add,
    ov.Subtract: np.subtract,
    ov.Multiply: np.multiply,
    ov.Divide: _divide,
    ov.Power: np.power,
    ov.Minimum: np.minimum,
    ov.Maximum: np.maximum,
    ov.BitwiseAnd: np.bitwise_and,
    ov.LogicalAnd: np.logical_and,
    ov.Equal: np.equal,
    ov.Less: np.less,
    ov.LessEqual: np.less_equal,
    ov.Greater: np.greater,
    ov.GreaterEqual: np.greater_equal,
}


@means(*_FUNCTIONS)
def elementwise(op: OvOp, *operands: Array) -> Array:
    """Apply the op's function in a wide type and round to the result's."""
    result = _FUNCTIONS[type(op)](*map(wide, operands))
    return result.astype(NUMPY[element_of(op.results[0])], copy=False)


@means(ov.Select)
def select(op: ov.Select, condition: Array, then: Array, otherwise: Array) -> Array:
    """Where the condition holds the one, elsewhere the other."""
    del op
    return np.where(condition, then, otherwise)


@means(ov.Convert)
def convert(op: ov.Convert, x: Array) -> Array:
    """Convert; bf16 is held as its raw bits."""
    return convert_values(x, element_of(op.x), op.destination_type.data)
