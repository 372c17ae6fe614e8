"""Matmuls, attention, and the fused ops around it, in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import attention as ov
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import NUMPY
from compiler_layer.reference.meaning import Array, means, wide
from compiler_layer.reference.ov.reduce import softmax_of


@means(MatMul)
def matmul(op: MatMul, a: Array, b: Array) -> Array:
    """Multiply matrices, with the op's transposes."""
    left, right = wide(a), wide(b)
    if int_value(op.transpose_a) and left.ndim > 1:
        left = left.swapaxes(-1, -2)
    if int_value(op.transpose_b) and right.ndim > 1:
        right = right.swapaxes(-1, -2)
    return _product(left, right).astype(NUMPY[element_of(op.output)], copy=False)


def _product(left: Array, right: Array) -> Array:
    """Multiply matrices; stacked rows times one matrix are one call of BLAS."""
    if left.ndim < 3 or right.ndim != 2:
        return np.asarray(np.matmul(left, right))
    rows = np.matmul(left.reshape(-1, left.shape[-1]), right)
    return rows.reshape(*left.shape[:-1], right.shape[-1])


@means(ov.ScaledDotProductAttention)
def attention(op: ov.ScaledDotProductAttention, *operands: Array) -> Array:
    """softmax(q kᵀ · scale + mask) v, with key heads repeated for their group of query heads."""
    q, k, v = (wide(x) for x in operands[:3])
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        group = q.shape[-3] // k.shape[-3]
        k, v = (np.repeat(x, group, -3) for x in (k, v))
    scale = operands[4].reshape(-1)[0] if op.scale is not None else 1 / np.sqrt(q.shape[-1])
    scores = np.matmul(q, k.swapaxes(-1, -2)) * np.float32(scale)
    if int_value(op.causal):
        allowed = np.tril(np.ones(scores.shape[-2:], bool))
        scores = np.where(allowed, scores, -np.inf)
    elif op.mask is not None:
        mask = operands[3]
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + wide(mask)
    return np.matmul(softmax_of(scores, -1), v).astype(operands[0].dtype, copy=False)


@means(ov.RMS)
def rms(op: ov.RMS, x: Array, *gamma: Array) -> Array:
    """Normalise rows by their root mean square."""
    wide_x = wide(x)
    mean = np.mean(wide_x * wide_x, -1, keepdims=True)
    result = wide_x / np.sqrt(mean + wide_x.dtype.type(op.epsilon.value.data))
    for scale in gamma:
        result = result * wide(scale)
    return result.astype(x.dtype, copy=False)


@means(ov.RoPE)
def rope(op: ov.RoPE, x: Array, cos: Array, sin: Array) -> Array:
    """Rotate pairs of channels that are half a head apart."""
    del op
    wide_x = wide(x)
    half = x.shape[-1] // 2
    rotated = np.concatenate([-wide_x[..., half:], wide_x[..., :half]], -1)
    return (wide_x * wide(cos) + rotated * wide(sin)).astype(x.dtype, copy=False)
