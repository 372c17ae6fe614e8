"""Convolutions and transposed convolutions in numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compiler_layer.dialects.ov import convolution as ov
from compiler_layer.dialects.ov.convolution import SPATIAL, FilterOp
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import NUMPY
from compiler_layer.reference.meaning import Array, means, wide


@means(ov.Convolution)
def convolution(op: ov.ConvolutionBase, x: Array, filters: Array) -> Array:
    """Sum the products over all filter elements."""
    padded = np.pad(wide(x), [(0, 0)] * SPATIAL + op.pads())
    strides, dilations = op.strides.get_values(), op.dilations.get_values()
    places = shape_of(op.output)[SPATIAL:]
    total = np.zeros((x.shape[0], filters.shape[0], *places), np.float32)
    for offset in np.ndindex(*filters.shape[SPATIAL:]):
        seen = padded[:, :, *met(offset, dilations, places, strides)]
        total += np.einsum("oc,bc...->bo...", wide(filters)[:, :, *offset], seen)
    return total.astype(NUMPY[element_of(op.output)], copy=False)


@means(ov.ConvolutionBackpropData)
def transposed_convolution(op: ov.TransposedConvolutionBase, x: Array, filters: Array) -> Array:
    """Sum the contributions of each element around its place."""
    sizes, kernel = x.shape[SPATIAL:], filters.shape[SPATIAL:]
    strides, dilations = op.strides.get_values(), op.dilations.get_values()
    whole = [
        (size - 1) * strides[axis] + op.reach(kernel[axis], axis) + op.added(axis)
        for axis, size in enumerate(sizes)
    ]
    total = np.zeros((x.shape[0], filters.shape[1], *whole), wide(x).dtype)
    for offset in np.ndindex(*kernel):
        made = np.einsum("bc...,co->bo...", wide(x), wide(filters[:, :, *offset]))
        total[:, :, *met(offset, dilations, sizes, strides)] += made
    cuts = zip(op.pads_begin.get_values(), whole, op.pads_end.get_values(), strict=True)
    return total[:, :, *(slice(begin, size - end) for begin, size, end in cuts)].astype(x.dtype)


@means(ov.GroupConvolution)
def group_convolution(op: ov.GroupConvolution, x: Array, filters: Array) -> Array:
    """Convolve each group of channels separately."""
    return _by_group(convolution, op, x, filters)


@means(ov.GroupConvolutionBackpropData)
def transposed_group_convolution(
    op: ov.GroupConvolutionBackpropData, x: Array, filters: Array
) -> Array:
    """Apply a transposed convolution to each group of channels."""
    return _by_group(transposed_convolution, op, x, filters)


def _by_group(meaning: Callable[..., Array], op: FilterOp, x: Array, filters: Array) -> Array:
    channels = np.split(x, len(filters), 1)
    parts = [meaning(op, part, own) for part, own in zip(channels, filters, strict=True)]
    return np.concatenate(parts, 1)


def met(
    offset: Sequence[int], steps: Sequence[int], places: Sequence[int], strides: Sequence[int]
) -> list[slice]:
    """Return the elements that one element of a filter or window meets, at all its places.

    Args:
        offset: the element's index.
        steps: the distance of a window's elements, for each axis.
        places: the number of windows.
        strides: the distance of windows.
    """
    return [
        slice(at * step, at * step + (count - 1) * stride + 1, stride)
        for at, step, count, stride in zip(offset, steps, places, strides, strict=True)
    ]
