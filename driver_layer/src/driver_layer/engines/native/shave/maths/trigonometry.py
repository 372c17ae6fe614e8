"""Sine and cosine, in f64, with the angle reduced to an eighth of a turn around 0."""

from __future__ import annotations

import math

from driver_layer.engines.native.jit.emitter import F32, F64, I64, Emitter, Value
from driver_layer.engines.native.shave.maths.polynomial import (
    absolute,
    bits,
    count,
    fit,
    horner,
    integers,
    like,
)

_LARGE = 2.0**20
"""Bound up to which quarter turns have 20 bits, so that products with the high part are exact."""

_QUARTER_HIGH = math.floor(math.pi / 2 * 2**32) / 2**32
_QUARTER_LOW = 6.123233995736766e-17 + (math.pi / 2 - _QUARTER_HIGH)
"""Low part of a quarter turn: the rest of f64's pi / 2, and the bits that f64 lacks."""

_ROUNDER = 1.5 * 2**52
"""Added to a small number, leaves the nearest integer in the lowest bits."""

_EIGHTH = math.pi / 4 * 1.001


def _sine_ratio(z: float) -> float:
    """Return sin(r) / r as a function of z = r**2, from its series."""
    return sum((-z) ** k / math.factorial(2 * k + 1) for k in range(12))


def _cosine(z: float) -> float:
    """Return cos(r) as a function of z = r**2, from its series."""
    return sum((-z) ** k / math.factorial(2 * k) for k in range(12))


_SINE_RATIO = fit(_sine_ratio, (0, _EIGHTH**2), 6)
_COSINE = fit(_cosine, (0, _EIGHTH**2), 6)


def sin(e: Emitter, x: Value) -> Value:
    """Return the sine of f32."""
    return _turned(e, x, 0)


def cos(e: Emitter, x: Value) -> Value:
    """Return the cosine of f32, a sine shifted by a quarter turn."""
    return _turned(e, x, 1)


def _turned(e: Emitter, x: Value, quarters: int) -> Value:
    """Return the sine of ``x`` plus some quarter turns; the C library computes large angles."""
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

    turn = b.add(bits(e, shifted, I64), integers(e, I64, quarters, x))
    odd = b.icmp_unsigned("!=", b.and_(turn, integers(e, I64, 1, x)), integers(e, I64, 0, x))
    value = b.select(odd, cosine, sine)
    second_half = b.icmp_unsigned(
        "!=", b.and_(turn, integers(e, I64, 2, x)), integers(e, I64, 0, x)
    )
    value = b.select(second_half, b.fneg(value), value)
    # The sine of -0 is -0, which the sums above lose.
    rounded = b.fptrunc(value, e.vector(F32, lanes))
    if quarters:
        return rounded
    return b.select(b.fcmp_ordered("==", x, like(e, x, 0.0)), x, rounded)
