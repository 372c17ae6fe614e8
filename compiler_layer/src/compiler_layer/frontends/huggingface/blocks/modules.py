"""Modules of a decoder, and what they share: linear projections and norms of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import FloatAttr, StringAttr, f64
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, reduce
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.frontends.huggingface.decoder import Decoder, Norm, NormKind
from compiler_layer.frontends.huggingface.weights import Weights


@dataclass(frozen=True, slots=True)
class Scope:
    """Graph under construction, source of the weights, and description of the model."""

    g: GraphBuilder
    weights: Weights
    decoder: Decoder
    prefix: str = ""
    """Prefix of module names: empty, or a layer's name and a point."""

    def layer(self, number: int) -> Scope:
        """Return the scope for the modules of a layer."""
        prefix = self.decoder.names.layer.format(number) + "."
        return Scope(self.g, self.weights, self.decoder, prefix)


def linear(s: Scope, x: SSAValue, name: str, outputs: int, bias: bool) -> SSAValue:
    """Project rows, f32 [..., inputs], to [..., outputs], with the weights of a module."""
    name, inputs = s.prefix + name, shape_of(x)[-1]
    shape = (inputs, outputs) if s.decoder.input_major else (outputs, inputs)
    weight = s.weights.get(f"{name}.weight", shape)
    product = s.g.matmul(x, weight, transpose_b=not s.decoder.input_major, name=name)
    return _biased(s, product, name) if bias else product


def _biased(s: Scope, x: SSAValue, name: str) -> SSAValue:
    bias = s.weights.get(f"{name}.bias", shape_of(x)[-1:])
    return s.g.op(elementwise.Add, x, bias, name=f"{name}.plus_bias")


def norm(s: Scope, x: SSAValue, kind: Norm, name: str) -> SSAValue:
    """Normalize over the last dimension, with the weights of a module."""
    name = s.prefix + name
    normalise = rms_normal if kind.kind is NormKind.RMS else layer_normal
    width = (shape_of(x)[-1],)
    if kind.offset:
        gamma = s.weights.plus(f"{name}.weight", width, kind.offset)
    else:
        gamma = s.weights.get(f"{name}.weight", width)
    scaled = s.g.op(elementwise.Multiply, normalise(s.g, x, kind.epsilon), gamma, name=name)
    return _biased(s, scaled, name) if kind.bias else scaled


def rms_normal(g: GraphBuilder, x: SSAValue, epsilon: float) -> SSAValue:
    """Return x / sqrt(mean(x²) + ε)."""
    square = g.op(elementwise.Power, x, g.constant(np.array([[[2]]], np.float32)))
    mean = g.op(reduce.ReduceMean, square, g.ints(-1), keep_dims=bool_attr(True))
    small = g.constant(np.array([[[epsilon]]], np.float32))
    root = g.op(elementwise.Sqrt, g.op(elementwise.Add, mean, small))
    inverse = g.op(elementwise.Divide, g.constant(np.ones((1, 1, 1), np.float32)), root)
    return g.op(elementwise.Multiply, x, inverse)


def layer_normal(g: GraphBuilder, x: SSAValue, epsilon: float) -> SSAValue:
    """Return (x - mean(x)) / sqrt(variance(x) + ε)."""
    return g.op(
        reduce.MVN,
        x,
        g.ints(-1),
        normalize_variance=bool_attr(True),
        eps=FloatAttr(epsilon, f64),
        eps_mode=StringAttr("INSIDE_SQRT"),
    )
