"""Recognition of attention to stored rows, followed by new ones."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pydantic import ValidationError
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Reshape, Transpose
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FLOATS
from compiler_layer.model import Model
from compiler_layer.rewriting.match import producer, scalar_of
from npuw_layer.execution.host_attention.shapes import (
    SCALE_ELEMENT,
    STORED_ELEMENT,
    AttentionShape,
    CachedAttention,
    RowInputs,
)

_TOKEN_MAJOR = [0, 2, 1, 3]
_ROWS = 2
"""Axis of rows in keys and values [1, heads, rows, width]."""

_RANK = 4

Names = Mapping[SSAValue, str]


def find_attention(model: Model) -> CachedAttention | None:
    """Return the only attention that a model consists of; None for any other model.

    Args:
        model: the ops of an attention group, and constants; it is not changed.
    """
    outputs = model.outputs
    op = producer(outputs[0].value, ScaledDotProductAttention) if len(outputs) == 1 else None
    if op is None or op.mask is None or int_value(op.causal) or len(shape_of(op.q)) != _RANK:
        return None
    names = {port.value: port.name for port in model.inputs}
    k, v = (_rows(value, names) for value in (op.k, op.v))
    if k is None or v is None or op.mask not in names or op.q not in names:
        return None
    inputs = {port.name: port.value for port in model.inputs}
    kinds = {element_of(inputs[name]) for name in (*k.stored, *v.stored)}
    k_pieces, v_pieces = (_pieces(rows, inputs) for rows in (k, v))
    unlike = len(kinds) != 1 or k_pieces != v_pieces or shape_of(op.q)[0] != 1
    shape = _shape(op, op.mask, *kinds) if len(kinds) == 1 else None
    if shape is None or unlike or shape_of(op.mask)[-1] != shape.past + shape.tokens:
        return None
    return CachedAttention(
        q=names[op.q],
        k=k,
        v=v,
        mask=names[op.mask],
        output=outputs[0].name,
        parts=k_pieces,
        shape=shape,
    )


def _pieces(rows: RowInputs, inputs: Mapping[str, SSAValue]) -> tuple[int, ...]:
    """Return the maximum number of stored rows in each part of a cache."""
    return tuple(shape_of(inputs[name])[1] for name in rows.stored)


def _shape(op: ScaledDotProductAttention, mask: SSAValue, stored: str) -> AttentionShape | None:
    """Return the sizes of an attention; None if it cannot run in tiles."""
    _, query_heads, tokens, width = shape_of(op.q)
    _, heads, positions, value_width = shape_of(op.v)
    scale = 1 / math.sqrt(width) if op.scale is None else scalar_of(op.scale)
    try:
        return AttentionShape.model_validate(
            {
                "heads": heads,
                "group": query_heads // heads,
                "tokens": tokens,
                "past": positions - tokens,
                "width": width,
                "value_width": value_width,
                "element": element_of(op.q),
                "mask_element": element_of(mask),
                "mask": shape_of(mask)[:-1],
                "scale": scale,
                "scaled": stored == STORED_ELEMENT,
                "floats": stored if stored in FLOATS - {element_of(op.q)} else "",
            }
        )
    except ValidationError:
        return None


def _rows(value: SSAValue, names: Names) -> RowInputs | None:
    """Return the inputs that K or V is concatenated from; None for any other value."""
    join = producer(value, Concat)
    if join is None or join.known_axis() != _ROWS or len(join.parts) < 2:
        return None
    *stored, new = join.parts
    found = [_stored(part, element_of(new)) for part in stored]
    parts = [part for part in found if part is not None]
    scales = [scale for _, scale in parts if scale is not None]
    read = [*(rows for rows, _ in parts), *scales]
    if len(parts) < len(found) or len(scales) not in (0, len(parts)):
        return None
    if new not in names or any(each not in names for each in read):
        return None
    return RowInputs(
        stored=tuple(names[rows] for rows, _ in parts),
        scales=tuple(names[scale] for scale in scales),
        new=names[new],
    )


def _stored(part: SSAValue, element: str) -> tuple[SSAValue, SSAValue | None] | None:
    """Return the stored rows of a part of K or V, and their scales, if any; else None."""
    lying = _token_major(part)
    if lying is None:
        return None
    wide, other = producer(lying, Dequantize), producer(lying, Convert)
    if wide is not None:
        found = (element_of(wide.stored), element_of(wide.scale), shape_of(wide.scale))
        wanted = (STORED_ELEMENT, SCALE_ELEMENT, (*shape_of(lying)[:-1], 1))
        return (wide.stored, wide.scale) if wide.zero is None and found == wanted else None
    if other is not None and element_of(other.x) in FLOATS:
        return other.x, None
    return (lying, None) if element_of(lying) == element else None


def _token_major(value: SSAValue) -> SSAValue | None:
    """Return the rows [1, rows, heads, width] of a value [1, heads, rows, width]; else None."""
    turned = producer(value, Transpose)
    if turned is not None:
        return turned.x if turned.permutation() == _TOKEN_MAJOR else None
    reshaped = producer(value, Reshape)  # with a single head, a Reshape moves no element
    if reshaped is None:
        return None
    _, heads, rows, width = shape_of(value)
    return reshaped.x if heads == 1 and shape_of(reshaped.x) == (1, rows, 1, width) else None
