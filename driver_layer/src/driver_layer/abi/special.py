"""The error function, which numpy lacks: part of what SHAVE's ERF means."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev

_FLAT = 4.0
"""From here on, erf is 1 in f32."""

_DEGREE = 24
"""Enough for an error below 1e-9: the function is entire."""


def _ratio(squares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """erf(x) / x as a function of x²: even and smooth, so that small x keep their precision."""
    roots = np.sqrt(squares)
    return np.array([math.erf(root) / root if root else 2 / math.sqrt(math.pi) for root in roots])


_RATIO = Chebyshev.interpolate(_ratio, _DEGREE, [0, _FLAT**2])


def erf(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The error function, rounded to f32."""
    inside = np.clip(x.astype(np.float64), -_FLAT, _FLAT)
    return (inside * _RATIO(inside * inside)).astype(np.float32)
