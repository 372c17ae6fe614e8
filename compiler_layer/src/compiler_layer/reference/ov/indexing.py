"""Selection by index, and indices of largest and non-zero elements, in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import indexing as ov
from compiler_layer.dialects.ov.gather import Gather, GatherElements, GatherND
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.elements import NUMPY
from compiler_layer.reference.meaning import Array, means


@means(Gather)
def gather(op: Gather, data: Array, indices: Array, axis: Array) -> Array:
    """Gather slices; with batch dimensions, per batch."""
    along = int(axis.reshape(-1)[0]) % data.ndim
    batch = int_value(op.batch_dims)
    if batch == 0:
        return np.take(data, indices, along)
    flat_data = data.reshape(-1, *data.shape[batch:])
    flat_indices = indices.reshape(-1, *indices.shape[batch:])
    taken = [np.take(d, i, along - batch) for d, i in zip(flat_data, flat_indices, strict=True)]
    return np.stack(taken).reshape(*data.shape[:batch], *taken[0].shape)


@means(GatherElements)
def gather_elements(op: GatherElements, data: Array, indices: Array) -> Array:
    """Gather one element for each index."""
    axis = int_value(op.axis)
    positive = np.where(indices < 0, indices + data.shape[axis], indices)
    index = list[Array](np.indices(indices.shape))
    index[axis] = positive
    return data[tuple(index)]


@means(GatherND)
def gather_nd(op: GatherND, data: Array, indices: Array) -> Array:
    """Gather slices at index tuples, per batch."""
    batch = int_value(op.batch_dims)
    outer = np.indices(indices.shape[:-1])[:batch]
    return data[(*outer, *np.moveaxis(indices, -1, 0))]


@means(ov.TopK)
def top_k(op: ov.TopK, x: Array, k: Array) -> tuple[Array, Array]:
    """Return the k largest or smallest elements; among equal ones, the first come first."""
    axis = int_value(op.axis)
    count = int(k.reshape(-1)[0])
    # Reversed twice: a stable sort keeps equal elements in order, largest first.
    order = (
        np.argsort(x, axis, kind="stable")
        if op.mode.data == "min"
        else np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    )
    chosen = np.take(order, np.arange(count), axis)
    if op.sort.data == "index":
        chosen = np.sort(chosen, axis)
    values = np.take_along_axis(x, chosen, axis)
    return values, chosen.astype(NUMPY[op.index_element_type.data])


@means(ov.NonZero)
def non_zero(op: ov.NonZero, x: Array) -> Array:
    """Return the indices of non-zero elements, one row per dimension."""
    return np.array(np.nonzero(x), NUMPY[op.output_type.data]).reshape(x.ndim, -1)


@means(ov.OneHot)
def one_hot(op: ov.OneHot, indices: Array, depth: Array, on: Array, off: Array) -> Array:
    """Compare indices with 0, 1, 2 … along the new dimension."""
    axis = int_value(op.axis) % (indices.ndim + 1)
    length = int(depth.reshape(-1)[0])
    counting = np.arange(length).reshape([-1 if i == axis else 1 for i in range(indices.ndim + 1)])
    hit = np.expand_dims(indices, axis) == counting
    return np.where(hit, on.reshape(()), off.reshape(()))
