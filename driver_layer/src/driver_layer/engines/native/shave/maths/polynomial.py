"""Polynomial approximations on an interval, and helpers for values of any shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.polynomial import Chebyshev, Polynomial

from driver_layer.engines.native.jit.emitter import Emitter, Value

Coefficients = tuple[float, ...]
"""Coefficients of a polynomial, the constant first."""


def fit(
    function: Callable[[float], float], interval: tuple[float, float], degree: int
) -> Coefficients:
    """Interpolate a function at Chebyshev points, which is close to the minimax polynomial."""

    def values(points: Any) -> Any:
        return np.array([function(float(x)) for x in points])

    series = Chebyshev.interpolate(values, degree, list(interval))
    powers = series.convert(kind=Polynomial, domain=[-1, 1], window=[-1, 1])
    return tuple(float(c) for c in powers.coef)


def horner(e: Emitter, x: Value, coefficients: Sequence[float]) -> Value:
    """Evaluate a polynomial by Horner's scheme."""
    *rest, total = (like(e, x, c) for c in coefficients)
    for coefficient in reversed(rest):
        total = e.fma(total, x, coefficient)
    return total


def like(e: Emitter, x: Value, number: float) -> Value:
    """Return a constant of the type of ``x``."""
    vector = isinstance(x.type, ir.VectorType)
    element = x.type.element if vector else x.type
    return e.splat(ir.Constant(element, number), count(x))


def count(x: Value) -> int:
    """Return the number of elements of a vector; 1 for a scalar."""
    return x.type.count if isinstance(x.type, ir.VectorType) else 1


def integers(e: Emitter, kind: ir.IntType, number: int, x: Value) -> Value:
    """Return an integer constant for each element of ``x``."""
    return e.splat(ir.Constant(kind, number), count(x))


def bits(e: Emitter, x: Value, kind: Any) -> Value:
    """Return the bits of ``x`` as integers of type ``kind``, which has the same size."""
    return e.b.bitcast(x, e.vector(kind, count(x)))


def is_nan(e: Emitter, x: Value) -> Value:
    """Return whether a value is NaN."""
    return e.b.fcmp_unordered("uno", x, x)


def absolute(e: Emitter, x: Value) -> Value:
    """Return the absolute value."""
    return e.intrinsic("llvm.fabs", x)


def with_sign_of(e: Emitter, size: Value, sign: Value) -> Value:
    """Return a value with the sign of another."""
    return e.intrinsic("llvm.copysign", size, sign)


def clamp(e: Emitter, x: Value, low: float, high: float) -> Value:
    """Limit a value to an interval; NaN stays NaN."""
    lowest, highest = like(e, x, low), like(e, x, high)
    above = e.b.select(e.b.fcmp_ordered("<", x, lowest), lowest, x)
    return e.b.select(e.b.fcmp_ordered(">", above, highest), highest, above)
