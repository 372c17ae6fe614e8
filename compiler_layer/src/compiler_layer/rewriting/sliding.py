"""Elements that filters are applied to, as slices of a padded tensor."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.convolution import SPATIAL, ConvolutionBase
from compiler_layer.dialects.ov.op import int_attr
from compiler_layer.dialects.ov.slicing import Concat, Slice
from compiler_layer.dialects.ov.types import Shape, element_of, shape_of
from compiler_layer.elements import NUMPY
from compiler_layer.rewriting.replace import insert_before


def seen(op: ConvolutionBase, x: SSAValue, offset: tuple[int, ...], places: Shape) -> SSAValue:
    """Slice the elements that one element of a filter is multiplied with.

    Args:
        op: the convolution; new ops are inserted before it.
        x: the op's operand, padded.
        offset: the position of the element in the filter.
        places: number of positions of the filter along each spatial axis.
    """
    strides, dilations = op.strides.get_values(), op.dilations.get_values()
    begins = [place * step for place, step in zip(offset, dilations, strict=True)]
    last = [
        begin + (count - 1) * step + 1
        for begin, count, step in zip(begins, places, strides, strict=True)
    ]
    axes = range(SPATIAL, SPATIAL + len(places))
    bounds = [
        insert_before(op, Constant.inline(np.array(each, np.int64)))
        for each in (begins, last, strides, [*axes])
    ]
    return insert_before(op, Slice.make([x, *bounds[:3], bounds[3:]]))


def padded(op: ConvolutionBase) -> SSAValue:
    """Return the operand padded with zeros."""
    x = op.x
    for axis, pads in enumerate(op.pads(), SPATIAL):
        begin, end = (_zeros(op, x, axis, count) for count in pads)
        if begin or end:
            x = join(op, [*begin, x, *end], axis)
    return x


def join(op: ConvolutionBase, parts: list[SSAValue], axis: int) -> SSAValue:
    """Concatenate tensors before an op."""
    return insert_before(op, Concat.make([parts], axis=int_attr(axis)))


def _zeros(op: ConvolutionBase, beside: SSAValue, axis: int, count: int) -> list[SSAValue]:
    if not count:
        return []
    shape, element = list(shape_of(beside)), element_of(beside)
    shape[axis] = count
    return [insert_before(op, Constant.inline(np.zeros(shape, NUMPY[element]), element))]
