"""One layer: attention and a feed-forward block, each with a residual connection."""

from __future__ import annotations

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import elementwise
from compiler_layer.frontends.huggingface.blocks.attention import Context, self_attention
from compiler_layer.frontends.huggingface.blocks.mlp import mlp
from compiler_layer.frontends.huggingface.blocks.norm import norm
from compiler_layer.frontends.huggingface.blocks.scope import Scope


def layer(s: Scope, x: SSAValue, context: Context) -> SSAValue:
    """Write a layer, f32 [B, M, hidden_size] to the same shape."""
    names = s.decoder.names
    seen = self_attention(s, _normal(s, x, names.attention_norm), context)
    seen = _normal(s, seen, names.attention_output_norm)
    between = _added(s, x, seen, "residual_attn")
    source = x if s.decoder.parallel else between
    made = mlp(s, _normal(s, source, names.mlp_norm))
    made = _normal(s, made, names.mlp_output_norm)
    return _added(s, between, made, "residual_mlp")


def _normal(s: Scope, x: SSAValue, name: str | None) -> SSAValue:
    return x if name is None else norm(s, x, s.decoder.norm, name)


def _added(s: Scope, x: SSAValue, change: SSAValue, name: str) -> SSAValue:
    change = s.g.times(change, s.decoder.residual_scale)
    return s.g.op(elementwise.Add, x, change, name=s.prefix + name)
