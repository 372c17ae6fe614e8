"""NF4, a 4-bit float of 16 values: the quantiles of a normal distribution, from -1 to 1.

Source: docs/reference/elf.md#nf4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

VALUES = np.array(
    [
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
        *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
        *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
        *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ],
    np.float32,
)
"""Value of each code, ascending."""

_BOUNDS = (VALUES[1:] + VALUES[:-1]) / 2


def nf4_to_f32(codes: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the values of codes, one per byte."""
    return VALUES[codes]


def f32_to_nf4(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Return the codes of the nearest values, one per byte."""
    return np.searchsorted(_BOUNDS, values).astype(np.uint8)
