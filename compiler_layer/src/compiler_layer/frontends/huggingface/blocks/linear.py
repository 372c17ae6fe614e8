"""Linear projections."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import elementwise
from compiler_layer.frontends.huggingface.blocks.scope import Scope


@dataclass(frozen=True, slots=True)
class Linear:
    """Weight matrix of a layer, with an optional bias."""

    name: str
    inputs: int
    outputs: int
    bias: bool


def linear(s: Scope, x: SSAValue, to: Linear) -> SSAValue:
    """Project rows, f32 [..., inputs], to [..., outputs]."""
    name = s.prefix + to.name
    shape = (to.inputs, to.outputs) if s.decoder.input_major else (to.outputs, to.inputs)
    weight = s.weights.get(f"{name}.weight", shape)
    product = s.g.matmul(x, weight, transpose_b=not s.decoder.input_major, name=name)
    if not to.bias:
        return product
    bias = s.weights.get(f"{name}.bias", (to.outputs,))
    return s.g.op(elementwise.Add, product, bias, name=f"{name}.plus_bias")
