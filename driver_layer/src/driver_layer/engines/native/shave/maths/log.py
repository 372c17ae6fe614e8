"""Natural logarithm, in f64: ``n * log(2) + log(m)`` with ``m`` near 1; and powers."""

from __future__ import annotations

import math

from driver_layer.engines.native.jit.emitter import F32, F64, I64, Emitter, Value
from driver_layer.engines.native.shave.maths.exp import exp_f64
from driver_layer.engines.native.shave.maths.polynomial import (
    absolute,
    bits,
    count,
    fit,
    horner,
    integers,
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
    moved = b.add(bits(e, x, I64), integers(e, I64, _ONE - _LOWEST, x))
    exponent = b.or_(b.lshr(moved, integers(e, I64, 52, x)), integers(e, I64, _INTEGER, x))
    f64 = e.vector(F64, count(x))
    n = b.fsub(b.bitcast(exponent, f64), like(e, x, 2.0**52 + 1023))
    fraction = b.add(b.and_(moved, integers(e, I64, _FRACTION, x)), integers(e, I64, _LOWEST, x))
    f = b.fsub(b.bitcast(fraction, f64), like(e, x, 1.0))
    s = b.fdiv(f, b.fadd(f, like(e, x, 2.0)))
    z = b.fmul(s, s)
    log_m = b.fmul(s, b.fadd(b.fmul(z, horner(e, z, _REST)), like(e, x, 2.0)))
    value = b.fadd(b.fmul(n, like(e, x, math.log(2))), log_m)
    infinite = b.fcmp_ordered("==", x, like(e, x, math.inf))
    value = b.select(b.or_(infinite, is_nan(e, x)), x, value)
    zero = b.fcmp_ordered("==", x, like(e, x, 0.0))
    return b.select(zero, like(e, x, -math.inf), value)


def power(e: Emitter, x: Value, y: Value) -> Value:
    """Return ``x ** y`` of f32, with IEEE 754's special cases."""
    b, lanes = e.b, count(x)
    f64 = e.vector(F64, lanes)
    size = absolute(e, x)
    one = like(e, x, 1.0)
    exponent = b.fpext(y, f64)
    logarithm = log_f64(e, b.fpext(size, f64))
    value = b.fptrunc(exp_f64(e, b.fmul(exponent, logarithm)), e.vector(F32, lanes))
    # (±1) ** ±inf is 1, although 0 * inf is NaN.
    endless = b.fcmp_ordered("==", absolute(e, y), like(e, y, math.inf))
    value = b.select(b.and_(endless, b.fcmp_ordered("==", size, one)), one, value)
    value = _signed(e, x, y, value)
    always_one = b.or_(b.fcmp_ordered("==", y, like(e, y, 0.0)), b.fcmp_ordered("==", x, one))
    return b.select(always_one, one, value)


def _signed(e: Emitter, x: Value, y: Value, value: Value) -> Value:
    """Apply the sign of x to |x| ** y if y is odd; NaN for finite negative x and fractional y."""
    b = e.b
    half = b.fmul(y, like(e, y, 0.5))
    whole = b.fcmp_ordered("==", e.intrinsic("llvm.floor", y), y)
    even = b.fcmp_ordered("==", e.intrinsic("llvm.floor", half), half)
    odd = b.and_(whole, b.not_(even))
    signed = b.select(odd, e.intrinsic("llvm.copysign", value, x), value)
    finite_negative = b.and_(
        b.fcmp_ordered("<", x, like(e, x, 0.0)),
        b.fcmp_ordered(">", x, like(e, x, -math.inf)),
    )
    undefined = b.and_(finite_negative, b.not_(whole))
    return b.select(undefined, like(e, x, math.nan), signed)
