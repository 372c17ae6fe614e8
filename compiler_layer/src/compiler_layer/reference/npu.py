"""The ``npu`` ops in numpy, except kernels, whose bodies ``interpreter`` evaluates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import convert_values
from compiler_layer.reference.meaning import Array, means
from compiler_layer.reference.ov.reduce import softmax_of
from driver_layer.abi.dtypes import pack_4bit


def _f32(value: SSAValue, array: Array) -> Array:
    return convert_values(array, element_of(value), "f32")


def _rounded(value: SSAValue, array: Array) -> Array:
    return convert_values(array, "f32", element_of(value))


def _per_channel(op: npu.MatMul, table: Array) -> Array:
    """Repeat entries [..., N, groups] for each channel of their group."""
    return table if table.shape[-1] == 1 else np.repeat(table, op.group, -1)


@means(npu.MatMul)
def matmul(op: npu.MatMul, a: Array, b: Array, *tables: Array) -> Array:
    """Multiply in f32, with quantised operands scaled, and round once."""
    if op.choices is not None:
        choices = tables[-1]
        b, tables = b[choices], tuple(table[choices] for table in tables[:-1])
    left = (_f32(op.a, a) - np.float32(op.a_zero_value)) * np.float32(op.a_scale_value)
    right = _f32(op.b, b)
    values = (op.scales, op.zeros, op.row_scales)
    present = (value for value in values if value is not None)
    found = {value: _f32(value, table) for value, table in zip(present, tables, strict=True)}
    if op.zeros is not None:
        right = right - _per_channel(op, found[op.zeros])
    if op.scales is not None:
        right = right * _per_channel(op, found[op.scales])
    if op.row_scales is not None:
        left = left * found[op.row_scales]
    if int_value(op.transpose_a):
        left = left.swapaxes(-1, -2)
    if int_value(op.transpose_b):
        right = right.swapaxes(-1, -2)
    return _rounded(op.output, np.matmul(left, right))


def _rows(
    found: Mapping[SSAValue, Array],
    parts: Sequence[SSAValue],
    scales: Sequence[SSAValue],
    sequences: int,
) -> Array:
    """Return keys or values, concatenated from their parts and scaled."""

    def joined(values: Sequence[SSAValue]) -> Array:
        count = len(values) // sequences
        begins = range(0, len(values), count)
        every = [np.concatenate([found[x] for x in values[i : i + count]], 2) for i in begins]
        return np.concatenate(every, 0)

    return joined(parts) * joined(scales) if scales else joined(parts)


@means(npu.Attention)
def attention(op: npu.Attention, *operands: Array) -> Array:
    """softmax(q kᵀ · scale + mask) v; weights are rounded to the type of q."""
    found = {value: _f32(value, array) for value, array in zip(op.operands, operands, strict=True)}
    q, count = found[op.q], op.sequences
    k, v = _rows(found, op.k, op.k_scales, count), _rows(found, op.v, op.v_scales, count)
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, group, 1) for x in (k, v))
    scores = np.matmul(q, k.swapaxes(-1, -2)) * np.float32(op.scale_value)
    if op.mask is not None:
        scores = scores + found[op.mask]
    weights = _rounded(op.q, softmax_of(scores, -1))
    return _rounded(op.output, np.matmul(_f32(op.q, weights), v))


@means(npu.Gather)
def gather(op: npu.Gather, table: Array, indices: Array) -> Array:
    """Gather rows."""
    del op
    return np.take(table, indices, 0)


@means(npu.Concat)
def concat(op: npu.Concat, *parts: Array) -> Array:
    """Concatenate along the axis."""
    return np.concatenate(parts, int_value(op.axis))


@means(npu.Bytes)
def pairs(op: npu.Bytes, x: Array) -> Array:
    """Pack two 4-bit elements into each byte."""
    return pack_4bit(x.reshape(-1)).reshape(shape_of(op.output))
