"""Numbers to test with: the same ones in each run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

_RANDOM = np.random.RandomState(0)


def floats(*shape: int) -> Floats:
    """Give f32 numbers, normally distributed."""
    return _RANDOM.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> Floats:
    """Give f32 numbers above 0.1."""
    return np.abs(floats(*shape)) + np.float32(0.1)
