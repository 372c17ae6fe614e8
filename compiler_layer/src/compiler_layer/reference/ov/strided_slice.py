"""Slices with Python's semantics in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import strided_slice as ov
from compiler_layer.reference.meaning import Array, means


@means(ov.StridedSlice)
def strided_slice(
    op: ov.StridedSlice, x: Array, begin: Array, end: Array, *strides: Array
) -> Array:
    """Index as Python does."""
    bounds = [[int(v) for v in bound.reshape(-1)] for bound in (begin, end, *strides)]
    index = op.index(bounds[0], bounds[1], bounds[2] if strides else None)
    return np.asarray(x[tuple(index)])
