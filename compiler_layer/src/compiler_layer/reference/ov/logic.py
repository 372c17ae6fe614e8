"""Comparisons, and Boolean and bitwise ops, in numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler_layer.dialects.ov import logic as ov
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import NUMPY
from compiler_layer.reference.meaning import Array, means, wide

_FUNCTIONS: dict[type[OvOp], Callable[..., Array]] = {
    ov.Equal: np.equal,
    ov.NotEqual: np.not_equal,
    ov.Less: np.less,
    ov.LessEqual: np.less_equal,
    ov.Greater: np.greater,
    ov.GreaterEqual: np.greater_equal,
    ov.LogicalAnd: np.logical_and,
    ov.LogicalOr: np.logical_or,
    ov.LogicalXor: np.logical_xor,
    ov.LogicalNot: np.logical_not,
    ov.BitwiseAnd: np.bitwise_and,
    ov.BitwiseOr: np.bitwise_or,
    ov.BitwiseXor: np.bitwise_xor,
    ov.BitwiseNot: np.bitwise_not,
    ov.BitwiseLeftShift: np.left_shift,
    ov.BitwiseRightShift: np.right_shift,
}


@means(*_FUNCTIONS)
def logic(op: OvOp, *operands: Array) -> Array:
    """Apply the op's function."""
    result = _FUNCTIONS[type(op)](*map(wide, operands))
    return result.astype(NUMPY[element_of(op.results[0])], copy=False)
