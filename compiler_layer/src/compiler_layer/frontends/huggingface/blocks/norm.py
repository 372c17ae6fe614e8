"""Normalization of rows."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import FloatAttr, StringAttr, f64
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, reduce
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.frontends.huggingface.blocks.scope import Scope
from compiler_layer.frontends.huggingface.decoder import Norm, NormKind


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
    if not kind.bias:
        return scaled
    bias = s.weights.get(f"{name}.bias", width)
    return s.g.op(elementwise.Add, scaled, bias, name=f"{name}.plus_bias")


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
