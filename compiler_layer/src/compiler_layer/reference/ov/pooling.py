"""Pooling in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import pooling as ov
from compiler_layer.dialects.ov.convolution import SPATIAL
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.elements import NUMPY
from compiler_layer.reference.meaning import Array, means, wide
from compiler_layer.reference.ov.convolution import met


@means(ov.MaxPool)
def max_pool(op: ov.MaxPool, x: Array) -> tuple[Array, Array]:
    """Return the largest elements, and their indices: among equal ones, the first."""
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    axis = int_value(op.axis) % x.ndim
    numbers = np.arange(np.prod(x.shape[axis:])).reshape(x.shape[axis:])
    windows = _windows(op, x, least)
    first = windows.argmax(0)[None]
    places = _windows(op, np.broadcast_to(numbers, x.shape), 0)
    indices = np.take_along_axis(places, first, 0)[0]
    return windows.max(0), indices.astype(NUMPY[op.index_element_type.data])


@means(ov.AvgPool)
def avg_pool(op: ov.AvgPool, x: Array) -> Array:
    """Return the means, computed in f32."""
    counts = np.ones_like(x, np.float32)
    inside = _windows(op, counts, 0 if int_value(op.exclude_pad) else 1).sum(0)
    return (_windows(op, wide(x), 0).sum(0) / inside).astype(x.dtype)


def _windows(op: ov.PoolOp, x: Array, padding: float) -> Array:
    """Return the elements of all windows: [elements of a window, B, C, …]."""
    padded = np.pad(x, [(0, 0)] * SPATIAL + op.pads(), constant_values=padding)
    places = shape_of(op.results[0])[SPATIAL:]
    strides = op.strides.get_values()
    parts = [
        padded[..., *met(offset, op.steps(), places, strides)]
        for offset in np.ndindex(*op.kernel.get_values())
    ]
    return np.stack(parts)
