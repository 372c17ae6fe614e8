"""Power function, in f64, with IEEE 754's special cases."""

from __future__ import annotations

import math

from driver_layer.engines.native.jit.emitter import F32, F64, Emitter, Value
from driver_layer.engines.native.shave.maths.exp import exp_f64
from driver_layer.engines.native.shave.maths.log import log_f64
from driver_layer.engines.native.shave.maths.polynomial import absolute, count, like


def power(e: Emitter, x: Value, y: Value) -> Value:
    """Return ``x ** y`` of f32."""
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
