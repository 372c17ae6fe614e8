"""Rows quantised as they pass: what a graph does to activations and to a cache of 8 bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Abs, Divide, Maximum, Multiply, Round
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.reduce import ReduceMax
from compiler_layer.dialects.ov.types import element_of, shape_of

LEVELS = 127
"""The largest magnitude of a symmetric 8-bit number."""

_SMALLEST = 2.0**-24
"""Keeps the scale of a row of zeros from being zero, as f16 too."""


@dataclass(frozen=True, slots=True)
class QuantizedRows:
    """Rows i8 [..., K], and what one of their steps is worth [..., 1]."""

    values: SSAValue
    scales: SSAValue


def quantize_rows(g: GraphBuilder, x: SSAValue, stored: str = "f32") -> QuantizedRows:
    """Append ops that divide each row by its largest magnitude: symmetric, 8 bits.

    The maximum comes last of what makes a scale, so that all are rows of one kernel.

    Args:
        g: where they go.
        x: floats [..., K].
        stored: the element type of the scales. Rows are divided by the scales before they are
            rounded to it: with f16 that makes 0.03 of a step at most.
    """
    rank = len(shape_of(x))

    def number(value: float) -> SSAValue:
        return g.constant(np.full((1,) * rank, value, np.float32))

    wide = x if element_of(x) == "f32" else g.convert(x, "f32")
    steps = g.op(Maximum, g.op(Multiply, g.op(Abs, wide), number(1 / LEVELS)), number(_SMALLEST))

    def largest(each: SSAValue) -> SSAValue:
        return g.op(ReduceMax, each, g.ints(-1), keep_dims=bool_attr(True))

    scales = largest(steps)
    whole = g.op(Round, g.op(Divide, wide, scales), mode=StringAttr("half_to_even"))
    kept = scales if stored == "f32" else largest(g.convert(steps, stored))
    return QuantizedRows(g.convert(whole, "i8"), kept)
