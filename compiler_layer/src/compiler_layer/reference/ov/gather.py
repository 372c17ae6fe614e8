"""Gather in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import gather as ov
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.reference.meaning import Array, means


@means(ov.Gather)
def gather(op: ov.Gather, data: Array, indices: Array, axis: Array) -> Array:
    """Gather slices; with batch dimensions, per batch."""
    along = int(axis.reshape(-1)[0]) % data.ndim
    batch = int_value(op.batch_dims)
    if batch == 0:
        return np.take(data, indices, along)
    flat_data = data.reshape(-1, *data.shape[batch:])
    flat_indices = indices.reshape(-1, *indices.shape[batch:])
    taken = [np.take(d, i, along - batch) for d, i in zip(flat_data, flat_indices, strict=True)]
    return np.stack(taken).reshape(*data.shape[:batch], *taken[0].shape)


@means(ov.GatherElements)
def gather_elements(op: ov.GatherElements, data: Array, indices: Array) -> Array:
    """Gather one element for each index."""
    axis = int_value(op.axis)
    positive = np.where(indices < 0, indices + data.shape[axis], indices)
    index = list[Array](np.indices(indices.shape))
    index[axis] = positive
    return data[tuple(index)]


@means(ov.GatherND)
def gather_nd(op: ov.GatherND, data: Array, indices: Array) -> Array:
    """Gather slices at index tuples, per batch."""
    batch = int_value(op.batch_dims)
    outer = np.indices(indices.shape[:-1])[:batch]
    return data[(*outer, *np.moveaxis(indices, -1, 0))]
