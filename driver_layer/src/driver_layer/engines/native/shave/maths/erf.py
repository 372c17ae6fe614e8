"""The error function: an odd polynomial about 0, else 1 less the exponential of a polynomial."""

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

_SMALL = 0.9
_FLAT = 4.0
"""From here on, erf is 1 in f32."""
_CENTRE = 2.0


def _ratio(z: float) -> float:
    """erf(x) / x - 1 as a function of z = x**2."""
    root = math.sqrt(z)
    return (math.erf(root) / root if root else 2 / math.sqrt(math.pi)) - 1


def _log_rest(x: float) -> float:
    """log(1 - erf(x)) with x counted from the centre."""
    return math.log(math.erfc(x + _CENTRE))


_RATIO = fit(_ratio, (0, _SMALL**2), 6)
_LOG_REST = fit(_log_rest, (_SMALL - _CENTRE, _FLAT - _CENTRE), 8)


def erf(e: Emitter, x: Value) -> Value:
    """The error function of f32."""
    b = e.b
    size = absolute(e, x)
    near = e.fma(horner(e, b.fmul(x, x), _RATIO), x, x)
    from_centre = b.fsub(clamp(e, size, 0.0, _FLAT), like(e, x, _CENTRE))
    far = b.fsub(like(e, x, 1.0), exp_inside(e, horner(e, from_centre, _LOG_REST)))
    small = b.fcmp_ordered("<", size, like(e, x, _SMALL))
    return b.select(small, near, with_sign_of(e, far, x))
