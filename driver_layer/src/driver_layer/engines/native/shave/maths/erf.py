"""Error function: an odd polynomial near 0, else 1 minus the exponential of a polynomial."""

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
"""Lower bound of x from which erf is 1 in f32."""
_CENTRE = 2.0


def _ratio(z: float) -> float:
    """Return erf(x) / x - 1 as a function of z = x**2."""
    root = math.sqrt(z)
    return (math.erf(root) / root if root else 2 / math.sqrt(math.pi)) - 1


def _log_rest(x: float) -> float:
    """Return log(1 - erf(x)) as a function of the distance from the center."""
    return math.log(math.erfc(x + _CENTRE))


_RATIO = fit(_ratio, (0, _SMALL**2), 6)
_LOG_REST = fit(_log_rest, (_SMALL - _CENTRE, _FLAT - _CENTRE), 8)


def erf(e: Emitter, x: Value) -> Value:
    """Return the error function of f32."""
    b = e.b
    size = absolute(e, x)
    near = e.fma(horner(e, b.fmul(x, x), _RATIO), x, x)
    from_centre = b.fsub(clamp(e, size, 0.0, _FLAT), like(e, x, _CENTRE))
    far = b.fsub(like(e, x, 1.0), exp_inside(e, horner(e, from_centre, _LOG_REST)))
    small = b.fcmp_ordered("<", size, like(e, x, _SMALL))
    return b.select(small, near, with_sign_of(e, far, x))
