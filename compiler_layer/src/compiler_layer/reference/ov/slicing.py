"""Concatenations, slices, splits and rolls in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import slicing as ov
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.strided_slice import StridedSlice
from compiler_layer.reference.meaning import Array, means


@means(ov.Concat)
def concat(op: ov.Concat, *parts: Array) -> Array:
    """Concatenate along the axis."""
    return np.concatenate(parts, int_value(op.axis))


@means(ov.Slice)
def slice_(op: ov.Slice, x: Array, start: Array, stop: Array, step: Array, *axes: Array) -> Array:
    """Slice along axes; bounds beyond the ends are clamped."""
    del op
    along = axes[0] if axes else np.arange(len(start))
    index = [slice(None)] * x.ndim
    bounds = np.stack([along, start, stop, step], 1).tolist()
    for axis, a, b, c in bounds:
        # With a negative step, a stop before the first element includes the first element.
        end = None if c < 0 and b < -x.shape[axis] else b
        index[axis] = slice(a, end, c)
    return x[tuple(index)]


@means(ov.Split)
def split(op: ov.Split, x: Array, axis: Array) -> tuple[Array, ...]:
    """Split into equal parts."""
    return tuple(np.split(x, int_value(op.num_splits), int(axis.reshape(-1)[0])))


@means(ov.VariadicSplit)
def variadic_split(
    op: ov.VariadicSplit, x: Array, axis: Array, lengths: Array
) -> tuple[Array, ...]:
    """Split into parts of given lengths."""
    del op
    along = int(axis.reshape(-1)[0])
    sizes = [int(n) for n in lengths]
    sizes = [x.shape[along] - sum(s for s in sizes if s >= 0) if n < 0 else n for n in sizes]
    return tuple(np.split(x, np.cumsum(sizes)[:-1], along))


@means(ov.Roll)
def roll(op: ov.Roll, x: Array, shift: Array, axes: Array) -> Array:
    """Roll elements along axes."""
    del op
    moved = np.broadcast_to(shift.reshape(-1), axes.reshape(-1).shape)
    for count, axis in zip(moved, axes.reshape(-1), strict=True):
        x = np.roll(x, int(count), int(axis))
    return x


@means(StridedSlice)
def strided_slice(op: StridedSlice, x: Array, begin: Array, end: Array, *strides: Array) -> Array:
    """Index as Python does."""
    bounds = [[int(v) for v in bound.reshape(-1)] for bound in (begin, end, *strides)]
    index = op.index(bounds[0], bounds[1], bounds[2] if strides else None)
    return np.asarray(x[tuple(index)])
