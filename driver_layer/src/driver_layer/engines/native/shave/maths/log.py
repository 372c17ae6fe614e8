"""Natural logarithm, in f64: ``n * log(2) + log(m)`` with ``m`` near 1."""

from __future__ import annotations

import math

from llvmlite import ir

from driver_layer.engines.native.jit.emitter import F32, F64, I64, Emitter, Value
from driver_layer.engines.native.shave.maths.polynomial import (
    bits,
    count,
    fit,
    horner,
    is_nan,
    like,
)

_LOWEST = 0x3FE6A09E00000000
"""Bits of the f64 just below the square root of 1/2, the smallest ``m``."""
_ONE = 0x3FF0000000000000
_FRACTION = (1 << 52) - 1
_INTEGER = 0x4330000000000000
"""Bits of 2**52; an integer in the fraction bits is added to it."""

_S_MAX = (math.sqrt(2) - 1) / (math.sqrt(2) + 1)


def _rest(z: float) -> float:
    """Return (2 * atanh(s) - 2 * s) / s**3 as a function of z = s**2, from its series."""
    return sum(2 * z**k / (2 * k + 3) for k in range(20))


_REST = fit(_rest, (0, _S_MAX**2 * 1.001), 6)


def log(e: Emitter, x: Value) -> Value:
    """Return the logarithm of f32."""
    b = e.b
    wide = b.fpext(x, e.vector(F64, count(x)))
    value = b.fptrunc(log_f64(e, wide), e.vector(F32, count(x)))
    negative = b.fcmp_ordered("<", x, like(e, x, 0.0))
    return b.select(negative, like(e, x, math.nan), value)


def log_f64(e: Emitter, x: Value) -> Value:
    """Return the logarithm of a positive normal f64, of 0, or of infinity; to about 1e-15."""
    b = e.b
    moved = b.add(bits(e, x, I64), _integers(e, _ONE - _LOWEST, x))
    exponent = b.or_(b.lshr(moved, _integers(e, 52, x)), _integers(e, _INTEGER, x))
    f64 = e.vector(F64, count(x))
    n = b.fsub(b.bitcast(exponent, f64), like(e, x, 2.0**52 + 1023))
    fraction = b.add(b.and_(moved, _integers(e, _FRACTION, x)), _integers(e, _LOWEST, x))
    f = b.fsub(b.bitcast(fraction, f64), like(e, x, 1.0))
    s = b.fdiv(f, b.fadd(f, like(e, x, 2.0)))
    z = b.fmul(s, s)
    log_m = b.fmul(s, b.fadd(b.fmul(z, horner(e, z, _REST)), like(e, x, 2.0)))
    value = b.fadd(b.fmul(n, like(e, x, math.log(2))), log_m)
    infinite = b.fcmp_ordered("==", x, like(e, x, math.inf))
    value = b.select(b.or_(infinite, is_nan(e, x)), x, value)
    zero = b.fcmp_ordered("==", x, like(e, x, 0.0))
    return b.select(zero, like(e, x, -math.inf), value)


def _integers(e: Emitter, number: int, x: Value) -> Value:
    return e.splat(ir.Constant(I64, number), count(x))
