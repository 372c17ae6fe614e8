"""Values from one element type to another, as numpy holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from compiler_layer.dialects.ov.types import NUMPY
from driver_layer.abi.dtypes import bf16_to_f32, f32_to_bf16

Array = npt.NDArray[Any]


def convert_values(x: Array, source: str, target: str) -> Array:
    """Convert; bf16 is held as its raw bits, floats lose their fraction towards zero."""
    if source == target:
        return x
    if source == "bf16":
        x = bf16_to_f32(x)
    if target == "bf16":
        return f32_to_bf16(x.astype(np.float32))
    return x != 0 if target == "boolean" else x.astype(NUMPY[target])
