"""Fusion of attention, with key heads that query heads share without copies."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Add, Divide, Multiply
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import bool_attr, int_value
from compiler_layer.dialects.ov.reduce import Softmax
from compiler_layer.dialects.ov.shape import Broadcast, Reshape, Transpose, Unsqueeze
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.match import producer, scalar_of
from compiler_layer.rewriting.replace import insert_before, replace


def _without_repetition(value: SSAValue) -> SSAValue:
    """Return the [B, Hkv, S, D] that a value repeats for each head of a group, or the value."""
    reshape = producer(value, Reshape)
    repeat = producer(reshape.x, Broadcast) if reshape is not None else None
    insert = producer(repeat.x, Unsqueeze) if repeat is not None else None
    if repeat is None or insert is None:
        return value
    source, repeated, merged = shape_of(insert.x), shape_of(repeat.output), shape_of(value)
    if len(source) != 4 or shape_of(insert.output) != (*source[:2], 1, *source[2:]):
        return value
    batch, heads, rows, width = source
    group = repeated[2]
    if repeated != (batch, heads, group, rows, width):
        return value
    return insert.x if merged == (batch, heads * group, rows, width) else value


def _share_heads(op: ScaledDotProductAttention) -> None:
    k, v = _without_repetition(op.k), _without_repetition(op.v)
    if (k is not op.k) and (v is not op.v):
        operands = [op.q, k, v, list(op.mask_and_scale)]
        replace(op, ScaledDotProductAttention.make(operands, causal=op.causal))


def _scaled(value: SSAValue) -> tuple[SSAValue, float]:
    """Return scores and factor of scores · factor, or of scores / divisor."""
    product, quotient = producer(value, Multiply), producer(value, Divide)
    if product is not None:
        for factor, scores in ((product.a, product.b), (product.b, product.a)):
            number = scalar_of(factor)
            if number is not None:
                return scores, number
    if quotient is not None:
        number = scalar_of(quotient.b)
        if number:
            return quotient.a, 1 / number
    return value, 1.0


def _keys(scores: MatMul) -> SSAValue | None:
    """Return the k [.., S, D] of q kᵀ, written with a flag or with a transpose."""
    if int_value(scores.transpose_a):
        return None
    if int_value(scores.transpose_b):
        return scores.b
    turned = producer(scores.b, Transpose)
    rank = len(shape_of(scores.b))
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    return turned.x if turned is not None and turned.permutation() == swapped else None


def _recognise(op: MatMul) -> None:
    """Fuse softmax(q kᵀ · factor [+ mask]) v of rank 4."""
    softmax = producer(op.a, Softmax)
    rank = len(shape_of(op.output))
    if softmax is None or rank != 4 or int_value(op.transpose_a) or int_value(op.transpose_b):
        return
    if int_value(softmax.axis) % rank != rank - 1:
        return
    masked = producer(softmax.x, Add)
    candidates = [(softmax.x, None)]
    if masked is not None:
        candidates += [(masked.a, masked.b), (masked.b, masked.a)]
    for logits, mask in candidates:
        scaled, factor = _scaled(logits)
        scores = producer(scaled, MatMul)
        k = _keys(scores) if scores is not None else None
        if scores is not None and k is not None:
            _replace(op, scores.a, k, mask, factor)
            return


def _replace(op: MatMul, q: SSAValue, k: SSAValue, mask: SSAValue | None, factor: float) -> None:
    # OpenVINO's op takes a scale only after a mask: without a mask, zeros are added.
    if mask is None:
        mask = insert_before(op, Constant.inline(np.zeros((1, 1), np.float32)))
    scale = insert_before(op, Constant.inline(np.array(factor, np.float32)))
    operands = [q, k, op.b, [mask, scale]]
    replace(op, ScaledDotProductAttention.make(operands, causal=bool_attr(False)))


class FuseSDPA(GraphPass):
    """Fuse attention, and let query heads share key heads without copies.

    Before:  %k2 = ov.Reshape(ov.Broadcast(ov.Unsqueeze(%k)))          [1,4,S,D] -> [1,8,S,D]
             %p = ov.Softmax(ov.Add(ov.Multiply(ov.MatMul(%q, %k2), 0.18), %mask))
             %y = ov.MatMul(%p, %v2)
    After:   %y = ov.ScaledDotProductAttention(%q, %k, %v, %mask, 0.18)
    """

    name = "fuse-sdpa"

    def _rewrite(self, model: Model) -> None:
        for each in model.ops:
            if isinstance(each, MatMul):
                _recognise(each)
        for each in model.ops:
            if isinstance(each, ScaledDotProductAttention):
                _share_heads(each)
        remove_dead_code(model)
