"""Split of matmuls with compressed weights of many experts into one matmul per expert."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.constant import Constant, constant_of
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, int_attr, int_value
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Reshape
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.partition.mixtures.rows import expert_part, is_cut
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.match import producer
from compiler_layer.rewriting.replace import insert_before, replace, reshape_before, split_before


def _weights(op: MatMul) -> Dequantize | None:
    """Return the compressed weights [E, N, K] of a matmul of [E, T, K], one matrix per expert."""
    reshape = producer(op.b, Reshape)
    weights = producer(op.b if reshape is None else reshape.x, Dequantize)
    a, b = shape_of(op.a), shape_of(op.b)
    if weights is None or len(a) != 3 or len(b) != 3 or b[0] != a[0] or b[0] == 1:
        return None
    stored = shape_of(weights.stored)
    if int_value(op.transpose_a) or stored[:2] != b[:2] or math.prod(stored) != math.prod(b):
        return None
    constants = [constant_of(x) for x in weights.operands]
    return weights if all(is_cut(x, len(stored)) for x in constants) else None


def _parts(constant: Constant, count: int, rank: int) -> Iterator[Constant]:
    """Yield each expert's part of a constant; the rank decreases by one."""
    for index in range(count):
        part = constant.each(partial(expert_part, index=index, rank=rank))
        part.attributes.update(constant.attributes)
        yield part


def _split(op: MatMul) -> None:
    weights = _weights(op)
    if weights is None:
        return
    (experts, *matrix), rank = shape_of(op.b), len(shape_of(weights.stored))
    tables = [constant_of(x) for x in weights.operands]
    cut = zip(*(_parts(x, experts, rank) for x in tables if x is not None), strict=True)
    products: list[SSAValue] = []
    for mine, parts in zip(split_before(op, op.a, 0), cut, strict=True):
        stored, scale, *zero = (insert_before(op, part) for part in parts)
        kind = weights.destination_type
        one = insert_before(op, Dequantize.make([stored, scale, zero], destination_type=kind))
        if shape_of(one) != tuple(matrix):
            one = reshape_before(op, one, tuple(matrix))
        product = MatMul.make([mine, one], transpose_a=op.transpose_a, transpose_b=op.transpose_b)
        if NAME_ATTRIBUTE in op.attributes:
            product.attributes[NAME_ATTRIBUTE] = op.attributes[NAME_ATTRIBUTE]
        products.append(insert_before(op, product))
    replace(op, Concat.make([products], axis=int_attr(0)))


class SplitExperts(OpPass):
    """Split matmuls with compressed weights of many experts into one matmul per expert.

    Before:  %w = ov.Dequantize(%stored : 8x64x96xi4, %scale) ; %y = ov.MatMul(%x, %w)
    After:   %w0 = ov.Dequantize(%stored0 : 64x96xi4, %scale0) ; %y0 = ov.MatMul(%x[0], %w0) ; …
             %y = ov.Concat(%y0, %y1, …)

    The DPU scales the weights of single matrices itself; batched weights would have to be widened
    in memory for every token. The parts stay in place in their file.
    """

    name = "split-experts"
    rewrites = ((MatMul, _split),)
