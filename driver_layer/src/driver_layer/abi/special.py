"""The error function, which numpy lacks; SHAVE's ERF is defined by it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev

_FLAT = 4.0
"""Argument from which on erf is 1 in f32."""

_DEGREE = 24
"""Degree that is sufficient for an error below 1e-9, as the function is entire."""


def _ratio(squares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return erf(x) / x as a function of x²: smooth, so that small x keep their precision."""
    roots = np.sqrt(squares)
    return np.array([math.erf(root) / root if root else 2 / math.sqrt(math.pi) for root in roots])


_RATIO = Chebyshev.interpolate(_ratio, _DEGREE, [0, _FLAT**2])


def erf(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the error function, rounded to f32."""
    inside = np.clip(x.astype(np.float64), -_FLAT, _FLAT)
    return (inside * _RATIO(inside * inside)).astype(np.float32)
