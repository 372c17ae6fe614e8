"""Reductions in numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler_layer.dialects.ov import reduce as ov
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.reference.meaning import Array, means, wide

_FUNCTIONS: dict[type[OvOp], Callable[..., Array]] = {
    ov.ReduceMean: np.mean,
    ov.ReduceSum: np.sum,
    ov.ReduceMax: np.max,
    ov.ReduceProd: np.prod,
}


@means(*_FUNCTIONS)
def reduction(op: ov.Reduction, x: Array, axes: Array) -> Array:
    """Reduce along the axes."""
    along = tuple(int(a) for a in axes.reshape(-1))
    result = _FUNCTIONS[type(op)](wide(x), axis=along, keepdims=bool(int_value(op.keep_dims)))
    return np.asarray(result).astype(x.dtype, copy=False)


def softmax_of(x: Array, axis: int) -> Array:
    """Softmax in f32 or wider; a row without any finite element gives zeros."""
    peak = x.max(axis, keepdims=True)
    shifted = np.exp(x - np.maximum(peak, np.finfo(np.float32).min))
    total = shifted.sum(axis, keepdims=True)
    return shifted / np.where(total == 0, 1, total)


@means(ov.Softmax)
def softmax(op: ov.Softmax, x: Array) -> Array:
    """Softmax along the axis."""
    return softmax_of(wide(x), int_value(op.axis)).astype(x.dtype, copy=False)
