"""Exponential function: ``2**n * exp(r)`` with ``r`` within half of log(2) around 0."""

from __future__ import annotations

import math

from llvmlite import ir

from driver_layer.engines.native.jit.emitter import F32, F64, I32, I64, Emitter, Value
from driver_layer.engines.native.jit.host import Isa
from driver_layer.engines.native.shave.maths.polynomial import (
    bits,
    clamp,
    count,
    fit,
    horner,
    integers,
    like,
)

_LOG2 = math.log(2)
_LOG2_HIGH = 355 / 512
"""log(2) in 9 bits, so that its product with any exponent of f32 is exact."""
_LOG2_LOW = _LOG2 - _LOG2_HIGH

_LOG2_HIGH_F64 = math.floor(_LOG2 * 2**32) / 2**32
_LOG2_LOW_F64 = _LOG2 - _LOG2_HIGH_F64

_HALF_STEP = _LOG2 / 2


def _second_rest(r: float) -> float:
    """Return (exp(r) - 1 - r) / r**2, from its series."""
    return sum(r**k / math.factorial(k + 2) for k in range(16))


_REST = fit(_second_rest, (-_HALF_STEP, _HALF_STEP), 4)
_REST_F64 = fit(_second_rest, (-_HALF_STEP, _HALF_STEP), 10)

_VANISHES = -103.98
"""Bound below which the exponential is less than half of the smallest f32."""

_INFINITE = 89.0
"""Bound above which the exponential exceeds the largest f32."""

_ROUNDER = 1.5 * 2**23
"""Added to a small f32, leaves the nearest integer in the lowest bits."""
_ROUNDER_BITS = 0x4B400000
_ROUNDER_F64 = 1.5 * 2**52


def exp(e: Emitter, x: Value) -> Value:
    """Return the exponential of f32; subnormal results are rounded once."""
    b = e.b
    # Results that round to 0 are not computed, as subnormal arithmetic is slow.
    vanishes = b.fcmp_ordered("<", x, like(e, x, _VANISHES))
    if _scales(e, x):
        value, shifted = _reduced(e, clamp(e, x, _VANISHES, _INFINITE))
        return _scaled_vectors(e, value, shifted, b.not_(vanishes))
    inside = b.select(vanishes, like(e, x, 0.0), _at_most(e, x, _INFINITE))
    value, shifted = _reduced(e, inside)
    return b.select(vanishes, like(e, x, 0.0), _scaled(e, value, shifted))


def exp_inside(e: Emitter, x: Value) -> Value:
    """Return the exponential of f32 from -87 to 88, or of NaN."""
    value, shifted = _reduced(e, x)
    return e.b.fmul(value, _power_of_two(e, bits(e, shifted, I32)))


def _reduced(e: Emitter, x: Value) -> tuple[Value, Value]:
    """Return exp(x) / 2**n, and n plus ``_ROUNDER``."""
    b = e.b
    rounder = like(e, x, _ROUNDER)
    shifted = e.fma(x, like(e, x, 1 / _LOG2), rounder)
    n = b.fsub(shifted, rounder)
    r = e.fma(n, like(e, x, -_LOG2_HIGH), x)
    r = e.fma(n, like(e, x, -_LOG2_LOW), r)
    return _one_plus(e, r, horner(e, r, _REST)), shifted


def _scales(e: Emitter, x: Value) -> bool:
    """Return whether the host has an instruction that multiplies by powers of two."""
    return e.host.isa >= Isa.AVX512 and count(x) % e.lanes == 0


def _scaled(e: Emitter, value: Value, shifted: Value) -> Value:
    """Return a value times a power of two; a subnormal product is rounded once."""
    # 2**n may be outside f32 although the result is not, so it is applied in two halves.
    b = e.b
    exponent = b.sub(bits(e, shifted, I32), integers(e, I32, _ROUNDER_BITS, value))
    half = b.ashr(exponent, integers(e, I32, 1, value))
    rest = b.sub(exponent, half)
    return b.fmul(b.fmul(value, _power_of_two(e, half)), _power_of_two(e, rest))


def _scaled_vectors(e: Emitter, value: Value, shifted: Value, there: Value) -> Value:
    """Scale like ``_scaled``, with the host's instruction; 0 where ``there`` is not set."""
    power = e.b.fsub(shifted, like(e, value, _ROUNDER))
    parts: list[Value] = []
    for begin in range(0, count(value), e.lanes):
        span = range(begin, begin + e.lanes)
        one, two, some = (e.lanes_of(whole, whole, span) for whole in (value, power, there))
        mask = e.b.bitcast(some, ir.IntType(e.lanes))
        # Rounding mode 4: the current one.
        operands = one, two, e.zero(e.lanes), mask, I32(4)
        name = "llvm.x86.avx512.mask.scalef.ps.512"
        parts.append(e.external(name, *operands, result=one.type))
    return e.side_by_side(parts)


def _power_of_two(e: Emitter, exponent: Value) -> Value:
    """Return 2**n in f32, with n in the lowest 9 bits of ``exponent``."""
    moved = e.b.shl(exponent, integers(e, I32, 23, exponent))
    return e.b.bitcast(
        e.b.add(moved, integers(e, I32, 127 << 23, exponent)), e.vector(F32, count(exponent))
    )


def exp_f64(e: Emitter, x: Value) -> Value:
    """Return the exponential of f64, to about 1e-15; arbitrary if outside f32's range."""
    b = e.b
    inside = clamp(e, x, -200.0, 200.0)
    rounder = like(e, x, _ROUNDER_F64)
    shifted = b.fadd(b.fmul(inside, like(e, x, 1 / _LOG2)), rounder)
    n = b.fsub(shifted, rounder)
    r = b.fsub(inside, b.fmul(n, like(e, x, _LOG2_HIGH_F64)))
    r = b.fsub(r, b.fmul(n, like(e, x, _LOG2_LOW_F64)))
    value = _one_plus(e, r, horner(e, r, _REST_F64))
    # The lowest bits of the shifted number are n; they are moved to the exponent field.
    exponent = b.shl(bits(e, shifted, I64), integers(e, I64, 52, x))
    scaled = b.add(bits(e, value, I64), exponent)
    return b.select(b.fcmp_ordered("ord", x, x), b.bitcast(scaled, e.vector(F64, count(x))), x)


def _one_plus(e: Emitter, r: Value, rest: Value) -> Value:
    """Return 1 + r + r**2 * rest, adding the small terms first."""
    b = e.b
    return b.fadd(e.fma(b.fmul(r, r), rest, r), like(e, r, 1.0))


def _at_most(e: Emitter, x: Value, limit: float) -> Value:
    highest = like(e, x, limit)
    return e.b.select(e.b.fcmp_ordered(">", x, highest), highest, x)
