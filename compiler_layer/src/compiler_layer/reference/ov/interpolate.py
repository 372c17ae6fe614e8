"""Resampling in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import interpolate as ov
from compiler_layer.reference.meaning import Array, means, wide


@means(ov.Interpolate)
def interpolate(op: ov.Interpolate, x: Array, scales_or_sizes: Array, axes: Array) -> Array:
    """Resample one axis after the other."""
    resampled = op.resampled(x.shape, scales_or_sizes, axes)
    if op.mode.data == ov.NEAREST:
        for each in resampled:
            x = np.take(x, each.nearest, each.axis)
        return x
    found = wide(x)
    for each in resampled:
        found = _linear(found, each)
    return found.astype(x.dtype, copy=False)


def _linear(x: Array, each: ov.ResampledAxis) -> Array:
    below, above, share = each.neighbours
    share = share.reshape([-1 if axis == each.axis else 1 for axis in range(x.ndim)])
    return np.take(x, below, each.axis) * (1 - share) + np.take(x, above, each.axis) * share
