"""Activation functions in numpy."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from compiler_layer.dialects.ov import activation as ov
from compiler_layer.reference.meaning import Array, means, means_each, wide
from driver_layer.abi.special import erf


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _swish(x: Array, beta: Array | float = 1.0) -> Array:
    return x * _sigmoid(x * np.asarray(beta, x.dtype))


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, 0)


def _hswish(x: Array) -> Array:
    return x * np.clip(x + 3, 0, 6) / 6


def _erf_inv(x: Array) -> Array:
    """Inverse erf by quantiles of the normal distribution: erf x = 2 Φ(x √2) - 1."""
    return np.array([_erf_inv_of(float(each)) for each in x.flat]).reshape(x.shape)


def _erf_inv_of(x: float) -> float:
    if abs(x) == 1:
        return math.copysign(math.inf, x)
    # The quantile below 0 is used, because 1 - |x| is exact even if x is close to ±1.
    quantile = _NORMAL.inv_cdf((1 - abs(x)) / 2) if abs(x) < 1 else math.nan
    return math.copysign(quantile, x) / math.sqrt(2)


_NORMAL = NormalDist()

means_each(
    {
        ov.Tanh: np.tanh,
        ov.Sigmoid: _sigmoid,
        ov.Swish: _swish,
        ov.Relu: _relu,
        ov.Erf: erf,
        ov.ErfInv: _erf_inv,
        ov.Softplus: _softplus,
        ov.HSwish: _hswish,
    }
)


@means(ov.PRelu)
def prelu(op: ov.PRelu, x: Array, slope: Array) -> Array:
    """Scale negative elements, by channel if the slope has an element per channel."""
    del op
    if slope.ndim == 1 and x.ndim > 1 and len(slope) == x.shape[1]:
        slope = slope.reshape(-1, *[1] * (x.ndim - 2))
    return np.where(x < 0, wide(x) * wide(slope), wide(x)).astype(x.dtype)


@means(ov.Gelu)
def gelu(op: ov.Gelu, x: Array) -> Array:
    """Gaussian error linear unit x · Φ(x), exact or by the tanh approximation."""
    v = wide(x)
    if op.approximation_mode.data.upper() == "TANH":
        inner = np.sqrt(2 / np.pi) * (v + 0.044715 * v * v * v)
        result = 0.5 * v * (1 + np.tanh(inner))
    else:
        result = 0.5 * v * (1 + erf(v * np.sqrt(0.5).astype(v.dtype)))
    return result.astype(x.dtype)


@means(ov.Clamp)
def clamp(op: ov.Clamp, x: Array) -> Array:
    """Clamp to the bounds."""
    low, high = op.min.value.data, op.max.value.data
    if x.dtype.kind != "f":
        limits = np.iinfo(x.dtype)
        low, high = max(np.ceil(low), limits.min), min(np.floor(high), limits.max)
    return np.clip(wide(x), low, high).astype(x.dtype)
