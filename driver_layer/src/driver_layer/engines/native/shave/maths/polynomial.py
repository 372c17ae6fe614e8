"""Polynomials that stand for smooth functions on an interval, and constants of a value's shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.polynomial import Chebyshev, Polynomial

from driver_layer.engines.native.jit.emitter import Emitter, Value

Coefficients = tuple[float, ...]
"""Of a polynomial, the constant first."""


def fit(
    function: Callable[[float], float], interval: tuple[float, float], degree: int
) -> Coefficients:
    """Interpolate a function at Chebyshev's points, which is close to the best polynomial."""

    def values(points: Any) -> Any:
        return np.array([function(float(x)) for x in points])

    series = Chebyshev.interpolate(values, degree, list(interval))
    powers = series.convert(kind=Polynomial, domain=[-1, 1], window=[-1, 1])
    return tuple(float(c) for c in powers.coef)


def horner(e: Emitter, x: Value, coefficients: Sequence[float]) -> Value:
    """Evaluate a polynomial, the highest power first."""
    *rest, total = (like(e, x, c) for c in coefficients)
    for coefficient in reversed(rest):
        total = e.fma(total, x, coefficient)
    return total


def like(e: Emitter, x: Value, number: float) -> Value:
    """A constant of the type of ``x``."""
    vector = isinstance(x.type, ir.VectorType)
    element = x.type.element if vector else x.type
    return e.splat(ir.Constant(element, number), count(x))


def count(x: Value) -> int:
    """Elements of a vector; 1 if it is none."""
    return x.type.count if isinstance(x.type, ir.VectorType) else 1


def bits(e: Emitter, x: Value, kind: Any) -> Value:
    """The bits of ``x`` as integers of type ``kind``, which is of its size."""
    return e.b.bitcast(x, e.vector(kind, count(x)))


def is_nan(e: Emitter, x: Value) -> Value:
    """Whether it is no number."""
    return e.b.fcmp_unordered("uno", x, x)


def absolute(e: Emitter, x: Value) -> Value:
    """Without its sign."""
    return e.intrinsic("llvm.fabs", x)


def with_sign_of(e: Emitter, size: Value, sign: Value) -> Value:
    """A value with the sign of another."""
    return e.intrinsic("llvm.copysign", size, sign)


def clamp(e: Emitter, x: Value, low: float, high: float) -> Value:
    """Keep a value in an interval; a NaN stays one."""
    lowest, highest = like(e, x, low), like(e, x, high)
    above = e.b.select(e.b.fcmp_ordered("<", x, lowest), lowest, x)
    return e.b.select(e.b.fcmp_ordered(">", above, highest), highest, above)
