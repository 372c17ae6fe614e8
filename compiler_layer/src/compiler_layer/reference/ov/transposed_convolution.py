"""Transposed convolutions in numpy."""

from __future__ import annotations

import itertools

import numpy as np

from compiler_layer.dialects.ov import transposed_convolution as ov
from compiler_layer.dialects.ov.filters import SPATIAL
from compiler_layer.reference.meaning import Array, means, wide


@means(ov.ConvolutionBackpropData)
def transposed_convolution(op: ov.ConvolutionBackpropData, x: Array, filters: Array) -> Array:
    """Sum the contributions of each element around its place."""
    return _scattered(op, x, filters)


@means(ov.GroupConvolutionBackpropData)
def transposed_group_convolution(
    op: ov.GroupConvolutionBackpropData, x: Array, filters: Array
) -> Array:
    """Apply a transposed convolution to each group of channels."""
    groups, taken = filters.shape[:2]
    parts = [_scattered(op, x[:, g * taken : (g + 1) * taken], filters[g]) for g in range(groups)]
    return np.concatenate(parts, 1)


def _scattered(op: ov.TransposedConvolutionBase, x: Array, filters: Array) -> Array:
    sizes, kernel = x.shape[SPATIAL:], filters.shape[SPATIAL:]
    strides, dilations = list(op.strides.get_values()), list(op.dilations.get_values())
    begins, ends = list(op.pads_begin.get_values()), list(op.pads_end.get_values())
    added = [op.added(axis) for axis in range(len(sizes))]
    whole = [
        (size - 1) * stride + (k - 1) * dilation + 1 + more
        for size, stride, k, dilation, more in zip(
            sizes, strides, kernel, dilations, added, strict=True
        )
    ]
    total = np.zeros((x.shape[0], filters.shape[1], *whole), wide(x).dtype)
    for offset in itertools.product(*map(range, kernel)):
        made = np.einsum("bc...,co->bo...", wide(x), wide(filters[:, :, *offset]))
        places = [
            slice(at * dilation, at * dilation + (size - 1) * stride + 1, stride)
            for at, dilation, size, stride in zip(offset, dilations, sizes, strides, strict=True)
        ]
        total[:, :, *places] += made
    kept = [slice(begin, size - end) for begin, size, end in zip(begins, whole, ends, strict=True)]
    return total[:, :, *kept].astype(x.dtype)
