"""Lowering of attention to DPU and SHAVE."""

from __future__ import annotations

import math

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects import npu
from compiler_layer.dialects.npu.dpu import LOWEST
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Select
from compiler_layer.dialects.ov.op import float_attr, int_value, ints_attr
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.errors import UnsupportedModel
from compiler_layer.passes.lower_attention.mask_reach import reach_of
from compiler_layer.passes.lower_attention.narrow_rows import narrow_rows
from compiler_layer.passes.lower_attention.of_sequence import SequenceOf
from compiler_layer.passes.lower_matmul import DPU_FLOATS
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.match import producer, scalar_of
from compiler_layer.rewriting.replace import insert_before, replace, reshape_before


def _parts(value: SSAValue) -> list[SSAValue]:
    """Return the tensors that keys or values are concatenated from along the sequence."""
    join = producer(value, Concat)
    if join is None or join.known_axis() != 2:
        return [value]
    return [part for each in join.parts for part in _parts(each)]


def _aligned(k: SSAValue, v: SSAValue) -> tuple[list[SSAValue], list[SSAValue]]:
    """Return the parts of keys and values if both are cut at the same rows; else one part each."""
    keys, values = _parts(k), _parts(v)
    rows = [[shape_of(part)[2] for part in parts] for parts in (keys, values)]
    return (keys, values) if rows[0] == rows[1] else ([k], [v])


def _causal_mask(op: ScaledDotProductAttention) -> SSAValue:
    rows, columns = shape_of(op.q)[2], shape_of(op.k)[2]
    allowed = np.tril(np.ones((rows, columns), bool))
    additive = np.where(allowed, np.float32(0), np.float32(LOWEST))
    return insert_before(op, Constant.inline(additive[None, None]))


def _additive_mask(op: ScaledDotProductAttention) -> SSAValue | None:
    """Return the additive mask, of rank 4."""
    if int_value(op.causal):
        return _causal_mask(op)
    mask = op.mask
    if mask is None:
        return None
    if len(shape_of(mask)) < 4:
        shape = shape_of(mask)
        mask = reshape_before(op, mask, (*(1,) * (4 - len(shape)), *shape))
    if element_of(mask) != "boolean":
        return mask
    zero, lowest = (
        insert_before(op, Constant.inline(np.array(number, np.float32))) for number in (0, LOWEST)
    )
    return insert_before(op, Select.make([mask, zero, lowest]))


def attention_refusal(op: ScaledDotProductAttention) -> str | None:
    """Return why the device cannot run an attention, or None."""
    shape = shape_of(op.q)
    if len(shape) != 4:
        return f"over {list(shape)}, not [B, H, M, D]"
    elements = [element_of(x) for x in (op.q, op.k, op.v)]
    if not set(elements) <= set(DPU_FLOATS):
        return f"of {', '.join(elements)}"
    return "with a scale that is not a constant" if _scale(op) is None else None


def _scale(op: ScaledDotProductAttention) -> float | None:
    return 1 / math.sqrt(shape_of(op.q)[-1]) if op.scale is None else scalar_of(op.scale)


def _lower(op: ScaledDotProductAttention) -> None:
    refusal, scale = attention_refusal(op), _scale(op)
    if refusal is not None or scale is None:
        raise UnsupportedModel(f"attention {op.friendly_name!r} {refusal}")
    keys, values = _of_all_sequences(op)
    mask = _additive_mask(op)
    stored, masks = narrow_rows(op, keys, values), [] if mask is None else [mask]
    reach = None if mask is None else reach_of(mask, shape_of(op.q)[2], shape_of(op.k)[2])
    lowered = npu.Attention(
        operands=[
            *(op.q, stored.keys, stored.values, masks),
            *(stored.key_scales, stored.value_scales),
        ],
        properties={
            "scale": float_attr(scale),
            "reach": None if reach is None else ints_attr(reach),
        },
        result_types=[op.output.type],
    )
    replace(op, lowered)


def _of_all_sequences(op: ScaledDotProductAttention) -> tuple[list[SSAValue], list[SSAValue]]:
    """Return the parts of keys and values, sequence by sequence."""
    keys, values = _aligned(op.k, op.v)
    each = [SequenceOf(op, number) for number in range(shape_of(op.q)[0])]
    found = [[of(part) for of in each for part in parts] for parts in (keys, values)]
    return found[0], found[1]


class LowerAttention(OpPass):
    """Lower attention to DPU and SHAVE.

    Before:  %k = ov.Concat(%past, %new)
             %y = ov.ScaledDotProductAttention(%q, %k, %v, %mask, 0.18)
    After:   %y = npu.attention %q keys %past, %new values … mask %mask {scale = 0.18}

    A cache and its new rows stay separate: they are joined on their way into CMX, so the cache is
    never copied in DDR. The same holds for the blocks of a block cache, and for the caches of a
    batch's sequences, if the graph concatenates them. A cache in 8 bits, or in 16 bits under f32,
    keeps its type (``narrow_rows``): the DPU reads it directly, with the scales of its rows if they
    are integers. Where the mask excludes the last positions of rows for all inputs, as causal masks
    do, ``reach`` states it.

    Raises:
        UnsupportedModel: a rank other than 4, or a scale that is not a constant.
    """

    name = "lower-attention"
    rewrites = ((ScaledDotProductAttention, _lower),)
