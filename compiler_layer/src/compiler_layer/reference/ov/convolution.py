"""Convolutions in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import convolution as ov
from compiler_layer.dialects.ov.filters import SPATIAL
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import NUMPY
from compiler_layer.reference.meaning import Array, means, wide


@means(ov.Convolution)
def convolution(op: ov.Convolution, x: Array, filters: Array) -> Array:
    """Sum the products over all filter elements."""
    return _slid(op, x, filters)


@means(ov.GroupConvolution)
def group_convolution(op: ov.GroupConvolution, x: Array, filters: Array) -> Array:
    """Convolve each group of channels separately."""
    groups, taken = filters.shape[0], filters.shape[2]
    parts = [_slid(op, x[:, g * taken : (g + 1) * taken], filters[g]) for g in range(groups)]
    return np.concatenate(parts, 1)


def _slid(op: ov.ConvolutionBase, x: Array, filters: Array) -> Array:
    rank, kernel = x.ndim - SPATIAL, filters.shape[SPATIAL:]
    padded = np.pad(wide(x), [(0, 0)] * SPATIAL + op.pads())
    strides, dilations = op.strides.get_values(), op.dilations.get_values()
    places = shape_of(op.output)[SPATIAL:]
    total = np.zeros((x.shape[0], filters.shape[0], *places), np.float32)
    for offset in np.ndindex(*kernel):
        begins = [offset[axis] * dilations[axis] for axis in range(rank)]
        seen = tuple(
            slice(begin, begin + (count - 1) * stride + 1, stride)
            for begin, count, stride in zip(begins, places, strides, strict=True)
        )
        part = wide(filters)[(slice(None), slice(None), *offset)]
        total += np.einsum("oc,bc...->bo...", part, padded[(slice(None), slice(None), *seen)])
    return total.astype(NUMPY[element_of(op.output)], copy=False)
