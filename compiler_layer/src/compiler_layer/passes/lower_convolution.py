"""Lowering of convolutions to matmuls."""

from __future__ import annotations

import itertools
import math

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.constant import Constant, constant_of
from compiler_layer.dialects.ov.convolution import SPATIAL, Convolution
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.shape import Transpose
from compiler_layer.dialects.ov.types import Shape, element_of, shape_of, tensor
from compiler_layer.passes.lower_matmul import DPU_FLOATS
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.match import producer
from compiler_layer.rewriting.replace import insert_before, reshape_before, take_over
from compiler_layer.rewriting.sliding import join, padded, seen


def convolution_refusal(op: Convolution) -> str | None:
    """Return why a convolution is not supported, or None."""
    element = element_of(op.x)
    return None if element in DPU_FLOATS else f"of {element}"


def _lower(op: Convolution) -> None:
    batch, channels, *_ = shape_of(op.x)
    filters, _, *kernel = shape_of(op.filters)
    places = shape_of(op.output)[SPATIAL:]
    width, count = channels * math.prod(kernel), math.prod(places)
    columns = reshape_before(op, _columns(op, kernel, places), (batch, width, count))
    matrix = _matrix(op, (filters, width))
    flags = {"transpose_a": bool_attr(True), "transpose_b": bool_attr(True)}
    rows = insert_before(op, MatMul.make([columns, matrix], **flags))
    order = insert_before(op, Constant.inline(np.array([0, 2, 1], np.int64)))
    turned = insert_before(op, Transpose.make([rows, order]))
    if len(places) > 1:
        turned = reshape_before(op, turned, (batch, filters, *places))
    take_over(op, turned)


def _columns(op: Convolution, kernel: list[int], places: Shape) -> SSAValue:
    """Return the inputs of each filter element, [B, C, filter elements, *positions] (im2col)."""
    x = padded(op)
    batch, channels = shape_of(x)[:SPATIAL]
    parts: list[SSAValue] = []
    for offset in itertools.product(*map(range, kernel)):
        part = seen(op, x, offset, places)
        parts.append(reshape_before(op, part, (batch, channels, 1, *places)))
    return parts[0] if len(parts) == 1 else join(op, parts, SPATIAL)


def _matrix(op: Convolution, shape: Shape) -> SSAValue:
    """Return the filters as a matrix [O, C · elements]; stored weights are not moved."""
    convert = producer(op.filters, Convert)
    constant = constant_of(op.filters if convert is None else convert.x)
    if constant is None:
        return reshape_before(op, op.filters, shape)
    kind = tensor(element_of(constant.output), shape)
    matrix = Constant(properties={"value": constant.value}, result_types=[kind])
    matrix.attributes.update(constant.attributes)
    value = insert_before(op, matrix)
    if convert is None:
        return value
    return insert_before(op, Convert.make([value], destination_type=convert.destination_type))


class LowerConvolution(OpPass):
    """Lower convolutions to matmuls.

    Before:  %y = ov.Convolution(%x : 1x2x6, %w : 4x2x3) {strides = [2], pads = 1, 1}
    After:   %p = ov.Concat(0, %x, 0) ; %c = ov.Concat(%p[0:5:2], %p[1:6:2], %p[2:7:2])
             %m = ov.MatMul(ov.Reshape(%c) : 1x6x3, %w : 4x6) ; %y = ov.Transpose(%m) : 1x4x3

    For each filter element, DMA slices the inputs that it is multiplied with. The slices form a
    matrix (im2col) that is multiplied with the stored filters. An input element is copied once per
    filter element, which is cheap for short filters (audio encoders: 3).
    """

    name = "lower-convolution"
    rewrites = ((Convolution, _lower),)
