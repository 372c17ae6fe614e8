"""Scatter updates in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import scatter as ov
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.reference.meaning import Array, means

_REDUCE = {
    "sum": np.add,
    "sub": np.subtract,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


@means(ov.ScatterUpdate)
def scatter_update(
    op: ov.ScatterUpdate, data: Array, indices: Array, updates: Array, axis: Array
) -> Array:
    """Replace complete slices; the dimensions of the indices take the place of the axis."""
    del op
    along = int(axis.reshape(-1)[0]) % data.ndim
    result = data.copy()
    index = (slice(None),) * along + (indices,)
    result[index] = updates
    return result


@means(ov.ScatterElementsUpdate)
def scatter_elements_update(
    op: ov.ScatterElementsUpdate, data: Array, indices: Array, updates: Array, axis: Array
) -> Array:
    """Replace single elements, or reduce updates of an element with its value."""
    along = int(axis.reshape(-1)[0]) % data.ndim
    index = list[Array](np.indices(indices.shape))
    index[along] = np.where(indices < 0, indices + data.shape[along], indices)
    at = tuple(index)
    result = data.copy()
    how = op.reduction.data
    if how == "none":
        result[at] = updates
    elif how == "mean":
        _mean_at(result, at, updates, bool(int_value(op.use_init_val)))
    else:
        if not int_value(op.use_init_val):
            result[at] = _neutral(how, data.dtype)
        _REDUCE[how].at(result, at, updates)
    return result


def _neutral(how: str, kind: np.dtype[np.generic]) -> object:
    """Return the neutral element of a reduction."""
    if how in ("sum", "prod"):
        return int(how == "prod")
    infinite = kind.kind == "f"
    limits = (-np.inf, np.inf) if infinite else (np.iinfo(kind.str).min, np.iinfo(kind.str).max)
    return limits[how == "min"]


def _mean_at(result: Array, at: tuple[Array, ...], updates: Array, with_own: bool) -> None:
    counts = np.zeros(result.shape, np.int64)
    np.add.at(counts, at, 1)
    sums = result.astype(np.float64) if with_own else np.where(counts > 0, 0.0, result)
    np.add.at(sums, at, updates)
    divisor = np.where(counts > 0, counts + with_own, 1)
    means_of = sums / divisor if result.dtype.kind == "f" else np.floor(sums / divisor)
    result[...] = means_of


@means(ov.ScatterNDUpdate)
def scatter_nd_update(op: ov.ScatterNDUpdate, data: Array, indices: Array, updates: Array) -> Array:
    """Replace slices at index tuples, or reduce updates with the existing values."""
    at = tuple(np.moveaxis(indices, -1, 0))
    result = data.copy()
    if op.reduction.data == "none":
        result[at] = updates
    else:
        _REDUCE[op.reduction.data].at(result, at, updates)
    return result
