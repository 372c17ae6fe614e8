"""Quantization of rows at run time, for activations and for an 8-bit cache."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Abs, Divide, Maximum, Multiply, Round
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.reduce import ReduceMax
from compiler_layer.dialects.ov.types import element_of

LEVELS = 127
"""Largest magnitude of a symmetric 8-bit number."""

_SMALLEST = 2.0**-24
"""Minimum scale, so that the scale of a row of zeros is not zero, even as f16."""


@dataclass(frozen=True, slots=True)
class QuantizedRows:
    """Rows i8 [..., K], and their scales [..., 1]."""

    values: SSAValue
    scales: SSAValue


def quantize_rows(g: GraphBuilder, x: SSAValue, stored: str = "f32") -> QuantizedRows:
    """Append ops that quantize each row by its largest magnitude: symmetric, 8 bits.

    The maximum is the last op of a scale, so that all ops form the rows of one kernel.

    Args:
        g: the graph that receives the ops.
        x: floats [..., K].
        stored: the element type of the scales. Rows are divided by the scales before these are
            rounded to the type: f16 causes an error of at most 0.03 steps.
    """
    wide = x if element_of(x) == "f32" else g.convert(x, "f32")
    sizes = g.op(Multiply, g.op(Abs, wide), g.number(1 / LEVELS, x))
    steps = g.op(Maximum, sizes, g.number(_SMALLEST, x))

    def largest(each: SSAValue) -> SSAValue:
        return g.op(ReduceMax, each, g.ints(-1), keep_dims=bool_attr(True))

    scales = largest(steps)
    whole = g.op(Round, g.op(Divide, wide, scales), mode=StringAttr("half_to_even"))
    kept = scales if stored == "f32" else largest(g.convert(steps, stored))
    return QuantizedRows(g.convert(whole, "i8"), kept)
