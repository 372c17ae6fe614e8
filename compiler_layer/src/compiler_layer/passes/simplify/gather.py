"""Rules of ``simplify`` that replace gathers by slices and broadcasts, or by gathers of rows."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import elementwise, gather, shape
from compiler_layer.dialects.ov.constant import Constant, constant_of, values_of
from compiler_layer.dialects.ov.op import int_attr, int_value
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import Array
from compiler_layer.rewriting.match import producer
from compiler_layer.rewriting.replace import insert_before, reshape_before, slice_before


def gather_of_everything(op: gather.Gather) -> SSAValue | None:
    """Remove a gather at 0, 1, 2 … to a dimension's end, or along a dimension of 1."""
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
    """Replace a gather at one index, or at indices with a constant positive step, by a slice."""
    indices = _known(op)
    if indices is None:
        return None
    steps = np.unique(np.diff(indices))
    axis = op.known_axis()
    beyond = indices[-1] >= shape_of(op.data)[axis]
    if beyond or len(steps) > 1 or (len(steps) and steps[0] <= 0):
        return None
    step = int(steps[0]) if len(steps) else 1
    cut = slice_before(op, op.data, axis, int(indices[0]), int(indices[-1]) + 1, step)
    return cut if cut.type == op.output.type else reshape_before(op, cut, shape_of(op.output))


def gather_of_repetitions(op: gather.Gather) -> SSAValue | None:
    """Replace a gather at 0, 0, 1, 1 … by a broadcast, as of channels that share an angle."""
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


def elements_of_whole_slices(op: gather.GatherElements) -> SSAValue | None:
    """Replace a gather of elements whose index is constant within a slice by a gather of slices.

    GPT-J looks up sines by position this way: ``table[position[i], j]`` for all j.
    """
    axis = int_value(op.axis) % len(shape_of(op.data))
    indices = _without_conversions(op.indices)
    repeat = producer(indices, shape.Broadcast)
    if repeat is not None:
        indices = repeat.x
    data, wanted = shape_of(op.data), shape_of(op.output)
    picked = (1,) * (len(wanted) - len(shape_of(indices))) + shape_of(indices)
    others = [i for i in range(len(data)) if i != axis]
    if any(picked[i] != 1 or data[i] != wanted[i] for i in others):
        return None
    # A table of rows if only dimensions of 1 precede the axis.
    lines, flat = op.data, reshape_before(op, indices, wanted[axis : axis + 1])
    if all(d == 1 for d in data[:axis]):
        lines, axis = reshape_before(op, lines, data[axis:]), 0
    along = insert_before(op, Constant.inline(np.array(axis, np.int64)))
    rows = gather.Gather.make([lines, flat, along], batch_dims=int_attr(0))
    return reshape_before(op, insert_before(op, rows), wanted)


def tuples_as_numbers(op: gather.GatherND) -> SSAValue | None:
    """Replace a gather at constant index tuples by one at row-major flat indices."""
    tuples = values_of(op.indices)
    if tuples is None or not tuples.size or int_value(op.batch_dims):
        return None
    depth = tuples.shape[-1]
    outer, inner = shape_of(op.data)[:depth], shape_of(op.data)[depth:]
    tuples = np.where(tuples < 0, tuples + outer, tuples).reshape(-1, depth)
    if not ((tuples >= 0) & (tuples < outer)).all():
        return None
    numbers = np.ravel_multi_index(tuple(tuples.T), outer)
    lines = reshape_before(op, op.data, (math.prod(outer), *inner))
    indices = insert_before(op, Constant.inline(numbers.astype(np.int64)))
    along = insert_before(op, Constant.inline(np.array(0, np.int64)))
    rows = gather.Gather.make([lines, indices, along], batch_dims=int_attr(0))
    return reshape_before(op, insert_before(op, rows), shape_of(op.output))


def _without_conversions(value: SSAValue) -> SSAValue:
    """Return a value before conversions between integer types."""
    convert = producer(value, elementwise.Convert)
    while convert is not None and element_of(convert.x) in ("i64", "i32"):
        value = convert.x
        convert = producer(value, elementwise.Convert)
    return value


def _known(op: gather.Gather) -> Array | None:
    """Return the indices, none negative, if they are constant and the data is not."""
    indices = values_of(op.indices)
    if indices is None or not indices.size or int_value(op.batch_dims):
        return None
    if max(indices.shape, default=1) < indices.size:
        return None  # an index matrix
    if constant_of(op.data) is not None:
        return None  # a constant table: DMA gathers from it, or it is folded
    flat = indices.reshape(-1).astype(np.int64)
    return np.where(flat < 0, flat + shape_of(op.data)[op.known_axis()], flat)
