"""KV cache of a layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import shape, state
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.frontends.huggingface.decoder import Attention


@dataclass(frozen=True, slots=True)
class Cache:
    """Variable, and its rows for the beams of this inference, f32 [B, Hkv, past, D]."""

    variable: str
    rows: SSAValue


def read_cache(
    g: GraphBuilder, attention: Attention, ids: SSAValue, beam_idx: SSAValue, name: str
) -> Cache:
    """Read a cache, e.g. ``0.key``; the initial one has no rows."""
    heads, width = attention.key_heads, attention.head_dim
    dims = g.concat([g.dim(ids, 0), g.ints(heads), g.ints(0), g.ints(width)], 0)
    zero = g.constant(np.array(0, np.float32))
    empty = g.op(shape.Broadcast, zero, dims, mode=StringAttr("numpy"))
    # The exporter's id: the names of the former input and output, joined.
    variable = f"past_key_values.{name}present.{name}"
    read = state.ReadValue(
        operands=[[empty]],
        properties={"variable_id": StringAttr(variable)},
        result_types=[tensor("f32", (-1, heads, -1, width))],
    )
    g.add(read, f"past_key_values.{name}")
    return Cache(variable, g.gather(read.output, beam_idx, 0))


def extend(g: GraphBuilder, past: Cache, rows: SSAValue) -> SSAValue:
    """Append new rows to a cache, assign the result, and return it."""
    present = g.concat([past.rows, rows], -2)
    g.add(state.Assign.make([present], variable_id=StringAttr(past.variable)))
    return present
