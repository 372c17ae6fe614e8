"""Grouped-query attention with a KV cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import activation, elementwise, reduce, shape, state
from compiler_layer.dialects.ov import attention as ov
from compiler_layer.dialects.ov.op import bool_attr, int_attr
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.frontends.huggingface.blocks.modules import Scope, linear, norm
from compiler_layer.frontends.huggingface.blocks.rotary import Angles, rotate
from compiler_layer.frontends.huggingface.decoder import Attention, Fusion


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


@dataclass(frozen=True, slots=True)
class Context:
    """Inputs of one layer's attention other than the hidden state."""

    angles: Angles | None
    """None if the layer has no rotary embedding."""
    mask: SSAValue
    past_keys: Cache
    past_values: Cache


def self_attention(s: Scope, x: SSAValue, context: Context) -> SSAValue:
    """Write masked self-attention, [B, M, hidden_size] to the same shape."""
    g, names, attention = s.g, s.decoder.names, s.decoder.attention
    q, k, v = _projections(s, x)
    if not attention.norm_jointly:
        q, k = _normal(s, q, names.q_norm), _normal(s, k, names.k_norm)
    q, k, v = (g.transpose(heads, 0, 2, 1, 3) for heads in (q, k, v))
    if context.angles is not None:
        q = rotate(g, q, context.angles, f"{s.prefix}q_rope")
        k = rotate(g, k, context.angles, f"{s.prefix}k_rope")
    keys = _repeat_heads(g, attention, extend(g, context.past_keys, k))
    values = _repeat_heads(g, attention, extend(g, context.past_values, v))
    attend = _attend if attention.softcap is None else _attend_softly
    seen = attend(s, q, keys, values, context.mask)
    width = attention.heads * attention.head_dim
    flat = g.reshape(g.transpose(seen, 0, 2, 1, 3), 0, 0, width)
    return linear(s, flat, names.output, s.decoder.hidden_size, attention.output_bias)


def _projections(s: Scope, x: SSAValue) -> list[SSAValue]:
    """Return queries, keys and values, each [B, M, heads, D]."""
    g, names, attention = s.g, s.decoder.names, s.decoder.attention
    bias, width = attention.bias, attention.head_dim
    counts = (attention.heads, attention.key_heads, attention.key_heads)
    sizes = [count * width for count in counts]
    if attention.fusion is Fusion.NONE:
        parts = [
            linear(s, x, name, size, bias) for name, size in zip(names.qkv, sizes, strict=True)
        ]
    else:
        whole = linear(s, x, names.qkv[0], sum(sizes), bias)
        if attention.fusion is Fusion.BY_HEAD:
            return g.split(g.reshape(whole, 0, 0, attention.heads, 3 * width), 3, [width] * 3)
        parts = g.split(whole, 2, sizes)
    if attention.norm_jointly:
        parts = [_normal(s, parts[0], names.q_norm), _normal(s, parts[1], names.k_norm), parts[2]]
    return [g.reshape(part, 0, 0, count, width) for part, count in zip(parts, counts, strict=True)]


def _normal(s: Scope, x: SSAValue, name: str) -> SSAValue:
    kind = s.decoder.attention.head_norm
    return x if kind is None else norm(s, x, kind, name)


def _repeat_heads(g: GraphBuilder, attention: Attention, x: SSAValue) -> SSAValue:
    """Repeat the shared key heads, one for each query head."""
    group = attention.heads // attention.key_heads
    if group == 1:
        return x
    one = g.unsqueeze(x, 2)
    heads, width = g.ints(attention.key_heads), g.ints(attention.head_dim)
    dims = g.concat([g.dim(x, 0), heads, g.ints(group), g.dim(x, 2), width], 0)
    repeated = g.op(shape.Broadcast, one, dims, mode=StringAttr("bidirectional"))
    return g.reshape(repeated, 0, attention.heads, -1, attention.head_dim)


def _attend(s: Scope, q: SSAValue, k: SSAValue, v: SSAValue, mask: SSAValue) -> SSAValue:
    """Return softmax(q kᵀ · scale + mask) v."""
    scale = s.g.constant(np.array(s.decoder.attention.scale, np.float32))
    return s.g.op(
        ov.ScaledDotProductAttention,
        q,
        k,
        v,
        [mask, scale],
        name=f"{s.prefix}sdpa",
        causal=bool_attr(False),
    )


def _attend_softly(s: Scope, q: SSAValue, k: SSAValue, v: SSAValue, mask: SSAValue) -> SSAValue:
    """Return the attention with scores soft-capped to ± softcap."""
    g, attention = s.g, s.decoder.attention
    scores = g.times(g.matmul(q, k, transpose_b=True), attention.scale)
    capped = soft_cap(g, scores, attention.softcap)
    masked = g.op(elementwise.Add, capped, mask)
    weights = g.op(reduce.Softmax, masked, axis=int_attr(-1))
    return g.matmul(weights, v, transpose_b=False, name=f"{s.prefix}sdpa")


def soft_cap(g: GraphBuilder, x: SSAValue, cap: float | None) -> SSAValue:
    """Return cap · tanh(x / cap), or x if the cap is None."""
    if cap is None:
        return x
    small = g.op(elementwise.Divide, x, g.number(cap, x))
    return g.times(g.op(activation.Tanh, small), cap)
