"""Comparisons, and Boolean and bitwise ops, in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import logic as ov
from compiler_layer.reference.meaning import means_each

means_each(
    {
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
)
