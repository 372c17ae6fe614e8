"""The blocks of a Llama-family decoder as ``ov`` ops, written as the exporter writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import (
    activation,
    attention,
    elementwise,
    logic,
    reduce,
    shape,
    slicing,
    state,
)
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.frontends.builder import GraphBuilder
from compiler_layer.frontends.huggingface.config import LlamaConfig

MASKED = -65504.0
"""What the exporter adds to the score of a position that is not attended to: f16's lowest."""

Weight = Callable[[str], SSAValue]
"""Gives a weight, as f32, by its name in the checkpoint."""


@dataclass(frozen=True, slots=True)
class Rotary:
    """Cosines and sines of the positions, f32 [B, 1, M, D]."""

    cos: SSAValue
    sin: SSAValue


def rotary(g: GraphBuilder, config: LlamaConfig, position_ids: SSAValue) -> Rotary:
    """Angles of each position: frequencies × positions, the same for both halves of a head."""
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float32) / np.float32(config.head_dim)
    frequencies = (np.float32(1) / np.float32(config.rope_theta) ** exponents).astype(np.float32)
    inv_freq = g.constant(frequencies.reshape(1, -1, 1))
    positions = g.convert(g.unsqueeze(position_ids, 1), "f32")
    angles = g.transpose(g.matmul(inv_freq, positions, transpose_b=False), 0, 2, 1)
    both = g.concat([angles, angles], -1)
    return Rotary(
        g.unsqueeze(g.op(elementwise.Cos, both), 1), g.unsqueeze(g.op(elementwise.Sin, both), 1)
    )


def rotate(g: GraphBuilder, x: SSAValue, angles: Rotary, half: int, name: str) -> SSAValue:
    """Turn pairs of channels: x · cos + [-x₂, x₁] · sin."""
    end = g.ints(np.iinfo(np.int64).max)
    axes, step = [g.ints(3)], g.ints(1)
    first = g.op(slicing.Slice, x, g.ints(0), g.ints(half), step, axes)
    second = g.op(slicing.Slice, x, g.ints(half), end, step, axes)
    minus = g.op(elementwise.Multiply, second, g.constant(np.array(-1, np.float32)))
    rotated = g.concat([minus, first], -1)
    return g.op(
        elementwise.Add,
        g.op(elementwise.Multiply, x, angles.cos),
        g.op(elementwise.Multiply, rotated, angles.sin),
        name=name,
    )


def rms_norm(
    g: GraphBuilder, config: LlamaConfig, x: SSAValue, weight: Weight, name: str
) -> SSAValue:
    """Normalise rows: x / sqrt(mean(x²) + ε) · weight."""
    square = g.op(elementwise.Power, x, g.constant(np.array([[[2]]], np.float32)))
    mean = g.op(reduce.ReduceMean, square, g.ints(-1), keep_dims=bool_attr(True))
    epsilon = g.constant(np.array([[[config.rms_norm_eps]]], np.float32))
    root = g.op(elementwise.Sqrt, g.op(elementwise.Add, mean, epsilon))
    inverse = g.op(elementwise.Divide, g.constant(np.ones((1, 1, 1), np.float32)), root)
    normal = g.op(elementwise.Multiply, x, inverse)
    return g.op(elementwise.Multiply, normal, weight(f"{name}.weight"), name=name)


def mask(g: GraphBuilder, attention_mask: SSAValue, past: SSAValue, ids: SSAValue) -> SSAValue:
    """What is added to scores, f32 [B, 1, M, S]: no position sees padding, or what follows it."""
    past_rows, new_rows = g.dim(past, 2), g.dim(ids, 1)
    total = g.op(elementwise.Add, past_rows, new_rows)

    def count(start: SSAValue, stop: SSAValue) -> SSAValue:
        first, last = (g.op(shape.Squeeze, bound, [g.ints(0)]) for bound in (start, stop))
        return g.op(shape.Range, first, last, g.scalar(1), output_type=StringAttr("i64"))

    keys = g.unsqueeze(count(g.ints(0), total), 0, 1, 2)
    queries = g.unsqueeze(count(past_rows, total), 0, 1, 3)
    causal = g.op(logic.LessEqual, keys, queries)
    real = g.unsqueeze(g.convert(attention_mask, "boolean"), 1, 2)
    allowed = g.op(logic.BitwiseAnd, causal, real)
    zero, masked = (g.constant(np.array(v, np.float32)) for v in (0, MASKED))
    return g.op(elementwise.Select, allowed, zero, masked, name="attention_mask_additive")


def cache(
    g: GraphBuilder, config: LlamaConfig, ids: SSAValue, beam_idx: SSAValue, layer: int, kind: str
) -> tuple[str, SSAValue]:
    """Read a layer's K or V cache, f32 [B, Hkv, past, D]; give its variable's id and its value."""
    heads, width = config.num_key_value_heads, config.head_dim
    dims = g.concat([g.dim(ids, 0), g.ints(heads), g.ints(0), g.ints(width)], 0)
    zero = g.constant(np.array(0, np.float32))
    empty = g.op(shape.Broadcast, zero, dims, mode=StringAttr("numpy"))
    # The id is the one that the exporter gives: names of the old input and output, joined.
    variable = f"past_key_values.{layer}.{kind}present.{layer}.{kind}"
    read = state.ReadValue(
        operands=[[empty]],
        properties={"variable_id": StringAttr(variable)},
        result_types=[tensor("f32", (-1, heads, -1, width))],
    )
    g.add(read, f"past_key_values.{layer}.{kind}")
    return variable, g.gather(read.output, beam_idx, 0)


def extend(g: GraphBuilder, variable: str, past: SSAValue, rows: SSAValue) -> SSAValue:
    """Append new rows to a cache and store it."""
    present = g.concat([past, rows], -2)
    g.add(state.Assign.make([present], variable_id=StringAttr(variable)))
    return present


def repeat_heads(g: GraphBuilder, config: LlamaConfig, x: SSAValue) -> SSAValue:
    """Give each query head its own copy of the key head it shares with others."""
    group = config.num_attention_heads // config.num_key_value_heads
    if group == 1:
        return x
    one = g.unsqueeze(x, 2)
    heads = g.ints(config.num_key_value_heads)
    width = g.ints(config.head_dim)
    dims = g.concat([g.dim(x, 0), heads, g.ints(group), g.dim(x, 2), width], 0)
    repeated = g.op(shape.Broadcast, one, dims, mode=StringAttr("bidirectional"))
    return g.reshape(repeated, 0, config.num_attention_heads, -1, config.head_dim)


@dataclass(frozen=True, slots=True)
class Attention:
    """What the attention of one layer needs besides its input."""

    angles: Rotary
    mask: SSAValue
    past_key: tuple[str, SSAValue]
    past_value: tuple[str, SSAValue]


def self_attention(
    g: GraphBuilder, config: LlamaConfig, x: SSAValue, weight: Weight, name: str, a: Attention
) -> SSAValue:
    """Grouped-query attention with rotary positions and a cache."""

    def heads(projection: str, count: int) -> SSAValue:
        full = f"{name}.{projection}"
        flat = g.matmul(x, weight(f"{full}.weight"), transpose_b=True, name=full)
        return g.transpose(g.reshape(flat, 0, 0, count, config.head_dim), 0, 2, 1, 3)

    half = config.head_dim // 2
    q = rotate(g, heads("q_proj", config.num_attention_heads), a.angles, half, f"{name}.q_rope")
    k = rotate(g, heads("k_proj", config.num_key_value_heads), a.angles, half, f"{name}.k_rope")
    v = heads("v_proj", config.num_key_value_heads)
    keys = repeat_heads(g, config, extend(g, *a.past_key, k))
    values = repeat_heads(g, config, extend(g, *a.past_value, v))
    scale = g.constant(np.array(config.head_dim**-0.5, np.float32))
    context = g.op(
        attention.ScaledDotProductAttention,
        q,
        keys,
        values,
        [a.mask, scale],
        name=f"{name}.sdpa",
        causal=bool_attr(False),
    )
    width = config.num_attention_heads * config.head_dim
    flat = g.reshape(g.transpose(context, 0, 2, 1, 3), 0, 0, width)
    return g.matmul(flat, weight(f"{name}.o_proj.weight"), transpose_b=True, name=f"{name}.o_proj")


def mlp(g: GraphBuilder, x: SSAValue, weight: Weight, name: str) -> SSAValue:
    """down(silu(gate(x)) · up(x))."""

    def project(value: SSAValue, projection: str) -> SSAValue:
        full = f"{name}.{projection}"
        return g.matmul(value, weight(f"{full}.weight"), transpose_b=True, name=full)

    gate = g.op(activation.Swish, project(x, "gate_proj"), [], name=f"{name}.act_fn")
    return project(g.op(elementwise.Multiply, gate, project(x, "up_proj")), "down_proj")
