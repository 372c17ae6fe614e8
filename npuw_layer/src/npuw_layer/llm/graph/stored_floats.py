"""Rows of K and V caches in a float type other than that of activations, of 8 bits or more.

A model that computes in f32 may keep K and V in f16: half the memory, half the traffic. Numbers
beyond the type's range are clamped, as an infinity would spoil all later results of attention.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.activation import Clamp
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Multiply
from compiler_layer.dialects.ov.op import float_attr
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.model import Model
from driver_layer.abi.float8 import FORMATS
from npuw_layer.llm.graph.stored_rows import (
    StoredCache,
    assign_rows,
    read_rows,
    replace_past,
    turned,
)

_LIMITS = {name: kind.limit for name, kind in FORMATS.items()} | {
    "f16": float(np.finfo(np.float16).max)
}
"""Largest numbers of types with a smaller range than f32."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Factors for rows before and after rounding; f32 scalars."""

    down: Constant
    up: Constant


def store_floats(model: Model, cache: StoredCache, kind: str, scale: Scale | None = None) -> None:
    """Store rows as floats of a type, clamped to its range.

    Attention reads new rows as later inferences will, as with ``store_quantized``.
    """
    element = element_of(cache.read.output)
    g = GraphBuilder(model, cache.read)
    up = None if scale is None else g.add(scale.up).output
    stored = [read_rows(model, cache, span, kind) for span in cache.spans]
    g = GraphBuilder(model, cache.read)
    replace_past(model, cache, [_wide(g, rows, element, up) for rows in stored])

    join = cache.assign.value.owner
    assert isinstance(join, Concat)  # ``cache_of`` found the new rows by it
    g = GraphBuilder(model, join)
    rows = cache.new
    if scale is not None:
        rows = g.op(Multiply, rows, g.add(scale.down).output)
    limit = _LIMITS.get(kind)
    if limit is not None:
        rows = g.op(Clamp, rows, min=float_attr(-limit), max=float_attr(limit))
    # Laid out token by token, as rows of the past, and read from that layout.
    values = turned(model, g.convert(rows, kind), join)
    join.operands[1] = turned(model, _wide(g, values, element, up), join)
    kept = assign_rows(model, cache, values)
    Rewriter.replace_op(cache.assign, [], [kept])


def _wide(g: GraphBuilder, rows: SSAValue, element: str, up: SSAValue | None) -> SSAValue:
    """Return stored rows in the type of activations."""
    if up is None:
        return g.convert(rows, element)
    return g.op(Dequantize, rows, up, [], destination_type=StringAttr(element))
