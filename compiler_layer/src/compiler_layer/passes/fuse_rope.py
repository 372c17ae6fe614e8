"""Fusion of rotary position embedding."""

from __future__ import annotations

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.attention import RoPE
from compiler_layer.dialects.ov.elementwise import Add, Multiply, Negative
from compiler_layer.dialects.ov.slicing import Concat, Slice
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.match import either, producer, scalar_of
from compiler_layer.rewriting.replace import replace


def _negated(value: SSAValue) -> SSAValue | None:
    """Return the x of -x, written as a negation or as a multiplication by -1."""
    negative = producer(value, Negative)
    if negative is not None:
        return negative.x
    product = producer(value, Multiply)
    if product is None:
        return None
    if scalar_of(product.b) == -1:
        return product.a
    return product.b if scalar_of(product.a) == -1 else None


def _half(value: SSAValue, second: bool) -> SSAValue | None:
    """Return the x of which a value is the first or second half along the last dimension."""
    cut = producer(value, Slice)
    slices = cut.slices() if cut is not None else None
    if cut is None or slices is None:
        return None
    shape = shape_of(cut.x)
    half = shape[-1] // 2
    wanted = range(half, 2 * half) if second else range(half)
    whole = all(len(range(d)[s]) == d for d, s in zip(shape[:-1], slices[:-1], strict=True))
    return cut.x if whole and range(shape[-1])[slices[-1]] == wanted else None


def _half_rotated(value: SSAValue) -> SSAValue | None:
    """Return the x of [-x₂, x₁]."""
    join = producer(value, Concat)
    if join is None or len(join.parts) != 2 or join.known_axis() != len(shape_of(value)) - 1:
        return None
    negated = _negated(join.parts[0])
    second = _half(negated, second=True) if negated is not None else None
    first = _half(join.parts[1], second=False)
    return first if first is not None and first is second else None


def _fuse(op: Add) -> None:
    for plain, turned in ((op.a, op.b), (op.b, op.a)):
        by_sin = producer(turned, Multiply)
        by_cos = producer(plain, Multiply)
        found = either(by_sin, Concat) if by_sin is not None else None
        x = _half_rotated(found[0].output) if found is not None else None
        if found is None or by_cos is None or x is None or x.type != op.output.type:
            continue
        if by_cos.a is x or by_cos.b is x:
            cos = by_cos.b if by_cos.a is x else by_cos.a
            replace(op, RoPE.make([x, cos, found[1]]))
            return


class FuseRoPE(OpPass):
    """Fuse rotary position embedding.

    Before:  %r = ov.Concat(ov.Multiply(%x[half:], -1), %x[:half]);
             %y = ov.Add(ov.Multiply(%x, %cos), ov.Multiply(%r, %sin))
    After:   %y = ov.RoPE(%x, %cos, %sin)
    """

    name = "fuse-rope"
    rewrites = ((Add, _fuse),)
