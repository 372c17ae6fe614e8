"""Feed-forward blocks."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import activation, elementwise
from compiler_layer.frontends.huggingface.blocks.linear import Linear, linear
from compiler_layer.frontends.huggingface.blocks.scope import Scope
from compiler_layer.frontends.huggingface.decoder import Activation


def mlp(s: Scope, x: SSAValue) -> SSAValue:
    """Return down(f(up(x))), or if gated down(f(gate(x)) · up(x)); [B, M, hidden_size]."""
    names, kind, hidden = s.decoder.names, s.decoder.mlp, s.decoder.hidden_size
    inner, bias = kind.inner_size, kind.bias
    if kind.gated and len(names.up) == 1:
        both = linear(s, x, Linear(names.up[0], hidden, 2 * inner, bias))
        parts = s.g.split(both, 2, [inner, inner])
    else:
        parts = [linear(s, x, Linear(name, hidden, inner, bias)) for name in names.up]
    first, *second = parts
    active = activate(s, first)
    for up in second:
        active = s.g.op(elementwise.Multiply, active, up)
    return linear(s, active, Linear(names.down, inner, hidden, bias))


def activate(s: Scope, x: SSAValue) -> SSAValue:
    """Apply the activation function."""
    name = f"{s.prefix}act_fn"
    if s.decoder.mlp.activation is Activation.SILU:
        return s.g.op(activation.Swish, x, [], name=name)
    mode = "TANH" if s.decoder.mlp.activation is Activation.GELU_TANH else "ERF"
    return s.g.op(activation.Gelu, x, name=name, approximation_mode=StringAttr(mode))
