"""Matmuls in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import matmul as ov
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import NUMPY
from compiler_layer.reference.meaning import Array, means, wide


@means(ov.MatMul)
def matmul(op: ov.MatMul, a: Array, b: Array) -> Array:
    """Multiply matrices, with the op's transposes."""
    left, right = wide(a), wide(b)
    if int_value(op.transpose_a) and left.ndim > 1:
        left = left.swapaxes(-1, -2)
    if int_value(op.transpose_b) and right.ndim > 1:
        right = right.swapaxes(-1, -2)
    return np.asarray(np.matmul(left, right)).astype(NUMPY[element_of(op.output)], copy=False)
