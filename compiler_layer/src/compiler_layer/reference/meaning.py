"""Table of op semantics: for each op class, a function from operand arrays to result arrays.

A function is called as ``meaning(op, *operands)`` and returns one array or a tuple of arrays.
Values of 16-bit floats are computed in f32 and rounded once, as the device does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from xdsl.ir import Operation

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import NUMPY

Array = npt.NDArray[Any]
Meaning = Callable[..., "Array | tuple[Array, ...]"]

MEANINGS: dict[type[Operation], Meaning] = {}
"""Function of each op class; ``reference.ov``, ``reference.npu`` and ``interpreter`` add them."""

AnyMeaning = TypeVar("AnyMeaning", bound=Meaning)


def means(*ops: type[Operation]) -> Callable[[AnyMeaning], AnyMeaning]:
    """Register a function for op classes."""

    def register(meaning: AnyMeaning) -> AnyMeaning:
        for op in ops:
            MEANINGS[op] = meaning
        return meaning

    return register


def means_each(functions: Mapping[type[OvOp], Callable[..., Array]]) -> None:
    """Register functions of elements, applied in a wide type and rounded to the result's type."""

    def rounded(op: OvOp, *operands: Array) -> Array:
        result = functions[type(op)](*map(wide, operands))
        return result.astype(NUMPY[element_of(op.results[0])], copy=False)

    means(*functions)(rounded)


def wide(x: Array) -> Array:
    """Widen f16 to f32; return other arrays unchanged."""
    return x.astype(np.float32) if x.dtype == np.float16 else x
