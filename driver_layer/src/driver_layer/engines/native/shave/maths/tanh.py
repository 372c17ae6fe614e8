"""Hyperbolic tangent: an odd polynomial near 0, else from the exponential."""

from __future__ import annotations

import math

from driver_layer.engines.native.jit.emitter import Emitter, Value
from driver_layer.engines.native.shave.maths.exp import exp_inside
from driver_layer.engines.native.shave.maths.polynomial import (
    absolute,
    clamp,
    fit,
    horner,
    like,
    with_sign_of,
)

_SMALL = 0.55
"""Bound below which 1 - 2 / (exp(2x) + 1) would lose bits."""

_FLAT = 10.0
"""Bound from which tanh is 1 in f32."""


def _rest(z: float) -> float:
    """Return (tanh(x) - x) / x**3 as a function of z = x**2."""
    if z < 1e-3:
        return -1 / 3 + z * (2 / 15 - z * 17 / 315)
    root = math.sqrt(z)
    return (math.tanh(root) - root) / (root * z)


_REST = fit(_rest, (0, _SMALL**2), 5)


def tanh(e: Emitter, x: Value) -> Value:
    """Return the hyperbolic tangent of f32."""
    b = e.b
    size = absolute(e, x)
    z = b.fmul(x, x)
    near = e.fma(b.fmul(horner(e, z, _REST), z), x, x)
    within = clamp(e, size, 0.0, _FLAT)
    power = exp_inside(e, b.fadd(within, within))
    one = like(e, x, 1.0)
    far = b.fsub(one, b.fdiv(like(e, x, 2.0), b.fadd(power, one)))
    small = b.fcmp_ordered("<", size, like(e, x, _SMALL))
    return with_sign_of(e, b.select(small, near, far), x)
