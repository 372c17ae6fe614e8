"""The table of meanings: for each op class, a function from operand arrays to result arrays.

A meaning is called as ``meaning(op, *operands)`` and gives one array or a tuple of them. Values of
16-bit floats are computed in f32 and rounded once, as the device does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.ir import Operation

Array = npt.NDArray[Any]
Meaning = Callable[..., "Array | tuple[Array, ...]"]

MEANINGS: dict[type[Operation], Meaning] = {}
"""The table; ``reference.ov``, ``reference.npu`` and ``interpreter`` fill it."""


def means(*ops: type[Operation]) -> Callable[[Meaning], Meaning]:
    """Register a function as the meaning of op classes."""

    def register(meaning: Meaning) -> Meaning:
        for op in ops:
            MEANINGS[op] = meaning
        return meaning

    return register


def wide(x: Array) -> Array:
    """Widen f16 to f32; leave the rest."""
    return x.astype(np.float32) if x.dtype == np.float16 else x
