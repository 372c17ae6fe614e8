"""Rules for updates of constant slices, as exporters write assignments to a part of a mask."""

from __future__ import annotations

import math

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import scatter, shape, slicing
from compiler_layer.dialects.ov.constant import values_of
from compiler_layer.dialects.ov.op import int_attr
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.elements import Array
from compiler_layer.rewriting.match import producer
from compiler_layer.rewriting.replace import insert_before, reshape_before, slice_before

MOST_RUNS = 64
"""Maximum number of contiguous runs; more would cost more than the update."""


def scatter_of_everything(op: scatter.ScatterNDUpdate) -> SSAValue | None:
    """Replace an update of all slices, in order; exporters write ``mask[:, :n] = …`` so."""
    indices = values_of(op.indices)
    if indices is None or op.reduction.data != "none":
        return None
    outer = shape_of(op.data)[: indices.shape[-1]]
    if indices.size != math.prod(outer) * len(outer):
        return None
    every = np.moveaxis(np.indices(outer), 0, -1).reshape(-1, len(outer))
    if not np.array_equal(indices.reshape(-1, len(outer)), every):
        return None
    same = op.updates.type == op.output.type
    return op.updates if same else reshape_before(op, op.updates, shape_of(op.output))


def scatter_of_runs(op: scatter.ScatterNDUpdate) -> SSAValue | None:
    """Replace an update of ascending slices: concatenate the slices between and the updates."""
    indices = values_of(op.indices)
    if indices is None or indices.shape[-1] != 1 or op.reduction.data != "none":
        return None
    length, *slice_dims = shape_of(op.data)
    flat = indices.reshape(-1).astype(np.int64)
    ascending = bool((np.diff(flat) > 0).all())
    if not flat.size or flat[0] < 0 or flat[-1] >= length or not ascending:
        return None
    updates = reshape_before(op, op.updates, (flat.size, *slice_dims))
    return _joined(op, op.data, updates, 0, flat)


def scatter_of_places(op: scatter.ScatterNDUpdate) -> SSAValue | None:
    """Replace an element-wise update of some places along one dimension by slices.

    Exporters write ``angles[..., 1:n:3] = …`` so, as in interleaved M-RoPE: data, indices and
    updates are flat.
    """
    indices, whole = values_of(op.indices), producer(op.data, shape.Reshape)
    if indices is None or whole is None or op.reduction.data != "none":
        return None
    dims = shape_of(whole.x)
    flat = indices.reshape(-1).astype(np.int64)
    if indices.shape[-1] != 1 or len(shape_of(op.data)) != 1 or not flat.size:
        return None
    if flat.min() < 0 or flat.max() >= math.prod(dims):
        return None
    each = [np.unique(coordinates) for coordinates in np.unravel_index(flat, dims)]
    some = [axis for axis, places in enumerate(each) if len(places) < dims[axis]]
    if len(some) != 1 or math.prod(map(len, each)) != flat.size:
        return None
    region = np.ravel_multi_index(np.meshgrid(*each, indexing="ij"), dims)
    if not np.array_equal(region.reshape(-1), flat):
        return None
    updates = reshape_before(op, op.updates, tuple(map(len, each)))
    joined = _joined(op, whole.x, updates, some[0], each[some[0]])
    return None if joined is None else reshape_before(op, joined, shape_of(op.output))


def _joined(
    op: scatter.ScatterNDUpdate, data: SSAValue, updates: SSAValue, axis: int, places: Array
) -> SSAValue | None:
    """Concatenate slices of data with updates at ascending places; None if runs are too many."""
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    if len(breaks) >= MOST_RUNS:
        return None
    length = shape_of(data)[axis]
    parts: list[SSAValue] = []
    done = 0
    for run in np.split(np.arange(places.size), breaks):
        first, last = int(places[run[0]]), int(places[run[-1]])
        if first > done:
            parts.append(slice_before(op, data, axis, done, first))
        parts.append(slice_before(op, updates, axis, int(run[0]), int(run[-1]) + 1))
        done = last + 1
    if done < length:
        parts.append(slice_before(op, data, axis, done, length))
    return insert_before(op, slicing.Concat.make([parts], axis=int_attr(axis)))
