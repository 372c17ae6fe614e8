"""Accuracy of the elementary functions, in units of the last place of f32."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

_COUNT = 40_000
_erf = np.vectorize(math.erf, otypes=[np.float64])

FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": _erf,
}

NEAR = {
    "exp": (-104, 89),
    "log": (0.5, 2),
    "sin": (-10, 10),
    "cos": (-10, 10),
    "tanh": (-1, 1),
    "erf": (-1.5, 1.5),
}
"""Inputs where each function is least accurate."""


def _patterns() -> np.ndarray:
    bits = np.random.default_rng(0).integers(0, 1 << 32, _COUNT, dtype=np.uint32)
    return bits.view(np.float32)


def _errors(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return differences from the rounded exact value; infinite if only one of both is NaN."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        size = np.minimum(np.abs(rounded), np.finfo(np.float32).max)
        unit = np.spacing(size).astype(np.float64)
        errors = np.abs(found.astype(np.float64) - rounded.astype(np.float64)) / unit
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    return np.where(same, 0, np.where(np.isnan(errors), np.inf, errors))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("where", ["anywhere", "near"])
def test_functions_are_within_two_units_of_the_exact_value(apply, name, where) -> None:
    x = _patterns()
    if where == "near":
        x = np.random.default_rng(1).uniform(*NEAR[name], _COUNT).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name](x.astype(np.float64))
    assert _errors(apply(f"{name} v0, v0", x), exact).max() <= 2


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_large_angles_are_accurate(apply, name) -> None:
    """Angles up to 2**20 and beyond, including neighbours of multiples of a quarter turn."""
    steps = np.random.default_rng(2).integers(0, 1 << 22, _COUNT) * (math.pi / 2)
    x = steps.astype(np.float32)
    exact = FUNCTIONS[name](x.astype(np.float64))
    assert _errors(apply(f"{name} v0, v0", x), exact).max() <= 2


def test_powers_are_within_two_units_of_the_exact_value(apply) -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([_patterns(), rng.uniform(0, 4, _COUNT).astype(np.float32)])
    y = np.concatenate([rng.uniform(-3, 3, _COUNT), rng.integers(-70, 70, _COUNT)])
    y = y.astype(np.float32)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    assert _errors(apply("pow v0, v0, v1", x, y), exact).max() <= 2


def test_zero_keeps_its_sign(apply) -> None:
    x = np.float32([0.0, -0.0] * 20)
    for name in ("sin", "tanh", "erf", "sqrt", "floor", "rint"):
        assert np.array_equal(np.signbit(apply(f"{name} v0, v0", x)), np.signbit(x)), name
    odd, even = np.full(40, 3, np.float32), np.full(40, 2, np.float32)
    assert np.array_equal(np.signbit(apply("pow v0, v0, v1", x, odd)), np.signbit(x))
    assert not np.signbit(apply("pow v0, v0, v1", x, even)).any()


def test_long_sums_are_accurate(apply) -> None:
    x = np.random.default_rng(4).uniform(0.5, 1, 200_000).astype(np.float32)
    total = apply("rsum v0, v0", x)[0]
    assert abs(total / x.astype(np.float64).sum() - 1) < 3e-5
