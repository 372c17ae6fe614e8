"""Move of the scales of keys and values out of attention."""

from __future__ import annotations

import math
from collections.abc import Iterator

from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.constant import Constant, constant_of
from compiler_layer.dialects.ov.elementwise import Convert, Multiply
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Reshape, Transpose
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FLOAT8, convert_values
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.replace import insert_before


def _origins(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the tensors that keys or values are concatenated from; a shared one is not split."""
    owner = value.owner
    if not value.has_one_use():
        yield value
    elif isinstance(owner, Concat):
        for part in owner.parts:
            yield from _origins(part)
    elif isinstance(owner, Transpose | Reshape):
        yield from _origins(owner.operands[0])
    else:
        yield value


def _scaled(value: SSAValue) -> list[Dequantize]:
    """Return the 8-bit floats that keys or values consist of, if all share one scale; else none."""
    owners = [origin.owner for origin in _origins(value)]
    found = [op for op in owners if isinstance(op, Dequantize) and _is_scaled(op)]
    alike = len(found) == len(owners) and len({op.scale for op in found}) == 1
    return found if alike else []


def _is_scaled(op: Dequantize) -> bool:
    single = constant_of(op.scale) is not None and math.prod(shape_of(op.scale)) == 1
    return single and op.zero is None and element_of(op.stored) in FLOAT8


def _unscale(stored: list[Dequantize]) -> Constant | None:
    """Replace Dequantize by Convert, so that attention reads stored values; return the scale."""
    for op in stored:
        plain = Convert.make([op.stored], destination_type=op.destination_type)
        Rewriter.replace_op(op, plain)
    return constant_of(stored[0].scale) if stored else None


def _times(value: SSAValue, scale: Constant) -> Multiply:
    """Return a multiplication in the value's type; the caller inserts its scale constant."""

    def number(one: Constant) -> Constant:
        values = convert_values(one.load(), element_of(one.output), element_of(value))
        return Constant.inline(values.reshape(()), element_of(value))

    return Multiply.make([value, scale.each(number).output])


def _move(op: ScaledDotProductAttention) -> None:
    keys, values = _scaled(op.k), _scaled(op.v)
    of_keys, of_values = _unscale(keys), _unscale(values)
    if of_keys is not None:
        product = _times(op.q, of_keys)
        _insert_number(product, InsertPoint.before(op))
        op.operands[0] = insert_before(op, product)
    if of_values is not None:
        product = _times(op.output, of_values)
        op.output.replace_all_uses_with(product.output)
        product.operands[0] = op.output
        Rewriter.insert_op(product, InsertPoint.after(op))
        _insert_number(product, InsertPoint.before(product))


def _insert_number(product: Multiply, place: InsertPoint) -> None:
    number = constant_of(product.b)
    assert number is not None  # it was just made
    Rewriter.insert_op(number, place)


class MoveRowScales(OpPass):
    """Move the scales of keys and values out of attention.

    Before:  %k = ov.Concat(ov.Dequantize(%past : …xf8E4M3FN, 0.1), ov.Dequantize(%new, 0.1)) ; %v …
             %y = ov.ScaledDotProductAttention(%q, %k, %v)
    After:   %k = ov.Concat(ov.Convert(%past), ov.Convert(%new)) ; %v … ; %s = ov.Multiply(%q, 0.1)
             %y = ov.Multiply(ov.ScaledDotProductAttention(%s, %k, %v), 0.2)

    A scale that all rows of a cache share need not multiply each row: queries and results are few.
    Attention then reads the cache as it is stored.

    Requires: ``fuse-sdpa``.
    """

    name = "move-row-scales"
    rewrites = ((ScaledDotProductAttention, _move),)
