"""Gathers at indices that are known: slices and repetitions, which cost nothing.

They are rules of ``simplify``.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import gather, shape, slicing
from compiler_layer.dialects.ov.constant import Constant, constant_of, values_of
from compiler_layer.dialects.ov.convert import Array
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.passes.rewrite import insert_before, reshape_before


def gather_of_everything(op: gather.Gather) -> SSAValue | None:
    """A gather along a dimension at 0, 1, 2 … to its end, or along a dimension of 1."""
    length = shape_of(op.data)[op.known_axis()]
    indices = values_of(op.indices)
    ordered = indices is not None and np.array_equal(indices.reshape(-1), np.arange(length))
    # The only valid index along a dimension of 1 is 0: a beam index of a single sequence.
    single = length == 1 and np.prod(shape_of(op.indices), dtype=int) == 1
    if int_value(op.batch_dims) or not (ordered or single):
        return None
    if op.data.type == op.output.type:
        return op.data
    return reshape_before(op, op.data, shape_of(op.output))


def gather_of_a_slice(op: gather.Gather) -> SSAValue | None:
    """A gather at indices with equal, positive distances, one index among them."""
    indices = _known(op)
    if indices is None:
        return None
    steps = np.unique(np.diff(indices))
    if len(steps) > 1 or (len(steps) and steps[0] <= 0):
        return None
    step = int(steps[0]) if len(steps) else 1
    axis = op.known_axis()
    bounds = (int(indices[0]), int(indices[-1]) + 1, step, axis)
    start, stop, stride, axes = (
        insert_before(op, Constant.inline(np.array([bound], np.int64))) for bound in bounds
    )
    cut = insert_before(op, slicing.Slice.make([op.data, start, stop, stride, [axes]]))
    return cut if cut.type == op.output.type else reshape_before(op, cut, shape_of(op.output))


def gather_of_repetitions(op: gather.Gather) -> SSAValue | None:
    """A gather at 0, 0, 1, 1 …: each index as often, as of channels that share an angle."""
    indices = _known(op)
    axis = op.known_axis()
    length = shape_of(op.data)[axis]
    if indices is None or len(indices) % length or len(indices) == length:
        return None
    times = len(indices) // length
    if not np.array_equal(indices, np.arange(length).repeat(times)):
        return None
    dims = shape_of(op.data)
    apart = reshape_before(op, op.data, (*dims[: axis + 1], 1, *dims[axis + 1 :]))
    wanted = (*dims[: axis + 1], times, *dims[axis + 1 :])
    target = insert_before(op, Constant.inline(np.array(wanted, np.int64)))
    repeated = shape.Broadcast.make([apart, target], mode=StringAttr("numpy"))
    return reshape_before(op, insert_before(op, repeated), shape_of(op.output))


def _known(op: gather.Gather) -> Array | None:
    """The indices, none negative, if they are known and the data is computed."""
    indices = values_of(op.indices)
    if indices is None or not indices.size or int_value(op.batch_dims) or indices.ndim > 1:
        return None
    if constant_of(op.data) is not None:
        return None  # a table: DMA gathers from it, or it is folded
    flat = indices.reshape(-1).astype(np.int64)
    return np.where(flat < 0, flat + shape_of(op.data)[op.known_axis()], flat)
