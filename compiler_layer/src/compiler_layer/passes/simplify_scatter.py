"""Updates of known slices: what exporters write an assignment to a part of a mask as."""

from __future__ import annotations

import math

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import scatter, slicing
from compiler_layer.dialects.ov.constant import Constant, values_of
from compiler_layer.dialects.ov.op import int_attr
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.passes.rewrite import insert_before, reshape_before

MOST_RUNS = 64
"""Of slices that follow each other; with more of them pieces cost more than the update."""


def scatter_of_everything(op: scatter.ScatterNDUpdate) -> SSAValue | None:
    """An update of all slices, in order: how exporters write an assignment to ``mask[:, :n]``."""
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
    """An update of slices in ascending order: what is between them, and the updates, joined."""
    indices = values_of(op.indices)
    if indices is None or indices.shape[-1] != 1 or op.reduction.data != "none":
        return None
    length, *slice_dims = shape_of(op.data)
    flat = indices.reshape(-1).astype(np.int64)
    breaks = np.flatnonzero(np.diff(flat) != 1) + 1
    ascending = bool((np.diff(flat) > 0).all())
    inside = flat.size and flat[0] >= 0 and flat[-1] < length
    if not inside or not ascending or len(breaks) >= MOST_RUNS:
        return None
    updates = reshape_before(op, op.updates, (flat.size, *slice_dims))
    parts: list[SSAValue] = []
    done = 0
    for run in np.split(np.arange(flat.size), breaks):
        first, last = int(flat[run[0]]), int(flat[run[-1]])
        if first > done:
            parts.append(_slice(op, op.data, done, first))
        parts.append(_slice(op, updates, int(run[0]), int(run[-1]) + 1))
        done = last + 1
    if done < length:
        parts.append(_slice(op, op.data, done, length))
    return insert_before(op, slicing.Concat.make([parts], axis=int_attr(0)))


def _slice(place: scatter.ScatterNDUpdate, value: SSAValue, start: int, stop: int) -> SSAValue:
    """Some slices of a value."""
    bounds = (start, stop, 1, 0)
    first, end, step, axes = (
        insert_before(place, Constant.inline(np.array([bound], np.int64))) for bound in bounds
    )
    return insert_before(place, slicing.Slice.make([value, first, end, step, [axes]]))
