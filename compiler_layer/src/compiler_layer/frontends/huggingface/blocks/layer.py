"""One layer: attention and a feed-forward block, each with a residual connection."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import activation, elementwise
from compiler_layer.frontends.huggingface.blocks.attention import Context, self_attention
from compiler_layer.frontends.huggingface.blocks.modules import Scope, linear, norm
from compiler_layer.frontends.huggingface.decoder import Activation


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


def mlp(s: Scope, x: SSAValue) -> SSAValue:
    """Return down(f(up(x))), or if gated down(f(gate(x)) · up(x)); [B, M, hidden_size]."""
    names, kind = s.decoder.names, s.decoder.mlp
    inner, bias = kind.inner_size, kind.bias
    if kind.gated and len(names.up) == 1:
        both = linear(s, x, names.up[0], 2 * inner, bias)
        parts = s.g.split(both, 2, [inner, inner])
    else:
        parts = [linear(s, x, name, inner, bias) for name in names.up]
    first, *second = parts
    active = activate(s, first)
    for up in second:
        active = s.g.op(elementwise.Multiply, active, up)
    return linear(s, active, names.down, s.decoder.hidden_size, bias)


def activate(s: Scope, x: SSAValue) -> SSAValue:
    """Apply the activation function."""
    name = f"{s.prefix}act_fn"
    if s.decoder.mlp.activation is Activation.SILU:
        return s.g.op(activation.Swish, x, [], name=name)
    mode = "TANH" if s.decoder.mlp.activation is Activation.GELU_TANH else "ERF"
    return s.g.op(activation.Gelu, x, name=name, approximation_mode=StringAttr(mode))
