"""Error function and hyperbolic tangent: odd polynomials near 0, else by the exponential."""

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

_ERF_SMALL = 0.9
_ERF_FLAT = 4.0
"""Lower bound of x from which erf is 1 in f32."""
_CENTRE = 2.0


def _ratio(z: float) -> float:
    """Return erf(x) / x - 1 as a function of z = x**2."""
    root = math.sqrt(z)
    return (math.erf(root) / root if root else 2 / math.sqrt(math.pi)) - 1


def _log_rest(x: float) -> float:
    """Return log(1 - erf(x)) as a function of the distance from the center."""
    return math.log(math.erfc(x + _CENTRE))


_RATIO = fit(_ratio, (0, _ERF_SMALL**2), 6)
_LOG_REST = fit(_log_rest, (_ERF_SMALL - _CENTRE, _ERF_FLAT - _CENTRE), 8)


def erf(e: Emitter, x: Value) -> Value:
    """Return the error function of f32."""
    b = e.b
    size = absolute(e, x)
    near = e.fma(horner(e, b.fmul(x, x), _RATIO), x, x)
    from_centre = b.fsub(clamp(e, size, 0.0, _ERF_FLAT), like(e, x, _CENTRE))
    far = b.fsub(like(e, x, 1.0), exp_inside(e, horner(e, from_centre, _LOG_REST)))
    small = b.fcmp_ordered("<", size, like(e, x, _ERF_SMALL))
    return b.select(small, near, with_sign_of(e, far, x))


_TANH_SMALL = 0.55
"""Bound below which 1 - 2 / (exp(2x) + 1) would lose bits."""

_TANH_FLAT = 10.0
"""Bound from which tanh is 1 in f32."""


def _tanh_rest(z: float) -> float:
    """Return (tanh(x) - x) / x**3 as a function of z = x**2."""
    if z < 1e-3:
        return -1 / 3 + z * (2 / 15 - z * 17 / 315)
    root = math.sqrt(z)
    return (math.tanh(root) - root) / (root * z)


_TANH_REST = fit(_tanh_rest, (0, _TANH_SMALL**2), 5)


def tanh(e: Emitter, x: Value) -> Value:
    """Return the hyperbolic tangent of f32."""
    b = e.b
    size = absolute(e, x)
    z = b.fmul(x, x)
    near = e.fma(b.fmul(horner(e, z, _TANH_REST), z), x, x)
    within = clamp(e, size, 0.0, _TANH_FLAT)
    power = exp_inside(e, b.fadd(within, within))
    one = like(e, x, 1.0)
    far = b.fsub(one, b.fdiv(like(e, x, 2.0), b.fadd(power, one)))
    small = b.fcmp_ordered("<", size, like(e, x, _TANH_SMALL))
    return with_sign_of(e, b.select(small, near, far), x)
