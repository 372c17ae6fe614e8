"""Sine and cosine, in f64: the angle is brought into an eighth of a turn about 0."""

from __future__ import annotations

import math

from llvmlite import ir

from driver_layer.engines.native.jit.emitter import F32, F64, I64, Emitter, Value
from driver_layer.engines.native.shave.maths.polynomial import (
    absolute,
    bits,
    count,
    fit,
    horner,
    like,
)

_LARGE = 2.0**20
"""Up to here, quarter turns have 20 bits: their product with the high part is exact."""

_QUARTER_HIGH = math.floor(math.pi / 2 * 2**32) / 2**32
_QUARTER_LOW = 6.123233995736766e-17 + (math.pi / 2 - _QUARTER_HIGH)
"""The quarter turn in f64 less its high part, and what f64's own lacks."""

_ROUNDER = 1.5 * 2**52
"""Added to a small number, leaves the nearest integer in the lowest bits."""

_EIGHTH = math.pi / 4 * 1.001


def _sine_ratio(z: float) -> float:
    """sin(r) / r as a function of z = r**2, from its series."""
    return sum((-z) ** k / math.factorial(2 * k + 1) for k in range(12))


def _cosine(z: float) -> float:
    """cos(r) as a function of z = r**2, from its series."""
    return sum((-z) ** k / math.factorial(2 * k) for k in range(12))


_SINE_RATIO = fit(_sine_ratio, (0, _EIGHTH**2), 6)
_COSINE = fit(_cosine, (0, _EIGHTH**2), 6)


def sin(e: Emitter, x: Value) -> Value:
    """The sine of f32."""
    return _turned(e, x, 0)


def cos(e: Emitter, x: Value) -> Value:
    """The cosine of f32: the sine a quarter of a turn on."""
    return _turned(e, x, 1)


def _turned(e: Emitter, x: Value, quarters: int) -> Value:
    """The sine of ``x`` and so many quarters of a turn; huge angles go to the C library."""
    b = e.b
    result = e.variable(_of_small(e, x, quarters))
    small = b.fcmp_ordered("<=", absolute(e, x), like(e, x, _LARGE))
    any_large = b.not_(e.reduce(small, b.and_))
    with b.if_then(any_large, likely=False):
        exact = e.intrinsic("llvm.cos" if quarters else "llvm.sin", x)
        result.set(b.select(small, result.get(), exact))
    return result.get()


def _of_small(e: Emitter, x: Value, quarters: int) -> Value:
    b, lanes = e.b, count(x)
    wide = b.fpext(x, e.vector(F64, lanes))
    rounder = like(e, wide, _ROUNDER)
    shifted = b.fadd(b.fmul(wide, like(e, wide, 2 / math.pi)), rounder)
    n = b.fsub(shifted, rounder)
    r = b.fsub(wide, b.fmul(n, like(e, wide, _QUARTER_HIGH)))
    r = b.fsub(r, b.fmul(n, like(e, wide, _QUARTER_LOW)))
    z = b.fmul(r, r)
    sine = b.fmul(r, horner(e, z, _SINE_RATIO))
    cosine = horner(e, z, _COSINE)

    def integers(number: int) -> Value:
        return e.splat(ir.Constant(I64, number), lanes)

    turn = b.add(bits(e, shifted, I64), integers(quarters))
    odd = b.icmp_unsigned("!=", b.and_(turn, integers(1)), integers(0))
    value = b.select(odd, cosine, sine)
    second_half = b.icmp_unsigned("!=", b.and_(turn, integers(2)), integers(0))
    value = b.select(second_half, b.fneg(value), value)
    # The sine of -0 is -0, which the sums above lose.
    rounded = b.fptrunc(value, e.vector(F32, lanes))
    if quarters:
        return rounded
    return b.select(b.fcmp_ordered("==", x, like(e, x, 0.0)), x, rounded)
