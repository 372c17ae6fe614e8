"""Resampling in numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler_layer.dialects.ov import interpolate as ov
from compiler_layer.reference.meaning import Array, means, wide

_NEAREST: dict[str, Callable[[Array], Array]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
}


@means(ov.Interpolate)
def interpolate(op: ov.Interpolate, x: Array, scales: Array, axes: Array) -> Array:
    """Resample one axis after the other."""
    found = wide(x)
    for axis, scale in zip(axes.reshape(-1), scales.reshape(-1), strict=True):
        found = _resampled(op, found, int(axis), np.float32(scale))
    return found.astype(x.dtype)


def _resampled(op: ov.Interpolate, x: Array, axis: int, scale: np.float32) -> Array:
    size = x.shape[axis]
    made = ov.scaled(size, float(scale))
    at = _places(op.coordinate_transformation_mode.data, made, scale)
    if op.mode.data == "nearest":
        nearest = _NEAREST[op.nearest_mode.data](at).astype(np.int64)
        return np.take(x, np.clip(nearest, 0, size - 1), axis)
    at = np.clip(at, 0, size - 1)
    below = np.floor(at).astype(np.int64)
    above = np.minimum(below + 1, size - 1)
    share = (at - below).astype(x.dtype)
    share = share.reshape([-1 if each == axis % x.ndim else 1 for each in range(x.ndim)])
    return np.take(x, below, axis) * (1 - share) + np.take(x, above, axis) * share


def _places(mode: str, made: int, scale: np.float32) -> Array:
    """Return positions of the result's elements in the operand, in f32 as OpenVINO does."""
    number = np.arange(made, dtype=np.float32)
    if mode == "asymmetric":
        return number / scale
    if mode == "pytorch_half_pixel" and made <= 1:
        return np.zeros(made, np.float32)
    half = np.float32(0.5)
    return (number + half) / scale - half
