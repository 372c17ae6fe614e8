"""Reductions in numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler_layer.dialects.ov import reduce as ov
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.reference.meaning import Array, means, wide


def _l1(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.sum(np.abs(x), axis=axis, keepdims=keepdims)


def _l2(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


_FUNCTIONS: dict[type[OvOp], Callable[..., Array]] = {
    ov.ReduceMean: np.mean,
    ov.ReduceSum: np.sum,
    ov.ReduceMax: np.max,
    ov.ReduceMin: np.min,
    ov.ReduceProd: np.prod,
    ov.ReduceL1: _l1,
    ov.ReduceL2: _l2,
    ov.ReduceLogicalAnd: np.all,
    ov.ReduceLogicalOr: np.any,
}


@means(*_FUNCTIONS)
def reduction(op: ov.Reduction, x: Array, axes: Array) -> Array:
    """Reduce along the axes."""
    along = tuple(int(a) for a in axes.reshape(-1))
    result = _FUNCTIONS[type(op)](wide(x), axis=along, keepdims=bool(int_value(op.keep_dims)))
    return np.asarray(result).astype(x.dtype, copy=False)


def softmax_of(x: Array, axis: int) -> Array:
    """Softmax in f32 or wider; a row without finite elements becomes zeros."""
    peak = x.max(axis, keepdims=True)
    shifted = np.exp(x - np.maximum(peak, np.finfo(np.float32).min))
    total = shifted.sum(axis, keepdims=True)
    return shifted / np.where(total == 0, 1, total)


@means(ov.Softmax)
def softmax(op: ov.Softmax, x: Array) -> Array:
    """Softmax along the axis."""
    return softmax_of(wide(x), int_value(op.axis)).astype(x.dtype, copy=False)


@means(ov.LogSoftmax)
def log_softmax(op: ov.LogSoftmax, x: Array) -> Array:
    """Logarithm of the softmax along the axis."""
    axis, v = int_value(op.axis), wide(x)
    shifted = v - v.max(axis, keepdims=True)
    return (shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))).astype(x.dtype, copy=False)


@means(ov.CumSum)
def cum_sum(op: ov.CumSum, x: Array, axis: Array) -> Array:
    """Prefix sums along the axis."""
    along = int(axis.reshape(-1)[0])
    v = np.flip(wide(x), along) if int_value(op.reverse) else wide(x)
    sums = np.cumsum(v, along, dtype=v.dtype)
    if int_value(op.exclusive):
        sums = sums - v
    return (np.flip(sums, along) if int_value(op.reverse) else sums).astype(x.dtype, copy=False)


@means(ov.MVN)
def mvn(op: ov.MVN, x: Array, axes: Array) -> Array:
    """Subtract the mean, and divide by the standard deviation."""
    along = tuple(int(a) for a in axes.reshape(-1))
    v = wide(x)
    centred = v - v.mean(along, keepdims=True)
    if int_value(op.normalize_variance):
        variance = (centred * centred).mean(along, keepdims=True)
        eps = v.dtype.type(op.eps.value.data)
        inside = op.eps_mode.data.lower() == "inside_sqrt"
        centred = centred / (np.sqrt(variance + eps) if inside else np.sqrt(variance) + eps)
    return centred.astype(x.dtype, copy=False)


@means(ov.GroupNormalization)
def group_normalization(op: ov.GroupNormalization, x: Array, scale: Array, bias: Array) -> Array:
    """Normalise groups of channels, and scale each channel."""
    v = wide(x).reshape(x.shape[0], int_value(op.num_groups), -1)
    centred = v - v.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    normal = (centred / np.sqrt(variance + v.dtype.type(op.epsilon.value.data))).reshape(x.shape)
    dims = (-1, *(1,) * (x.ndim - 2))
    return (normal * wide(scale).reshape(dims) + wide(bias).reshape(dims)).astype(x.dtype)
