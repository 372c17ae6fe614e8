"""Interpretation of bf16 ops: computed in f32, rounded once; numpy would treat bf16 as integers."""

from __future__ import annotations

import numpy as np

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import activation, elementwise, reduce
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.elements import convert_values
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter


def build(element: str) -> Model:
    """Return a model with a matmul, a sum, a mean, an activation, and ops that only move values."""
    model, (x, w) = Model.build([("x", tensor(element, (4, 8))), ("w", tensor(element, (8, 8)))])
    g = GraphBuilder(model)
    product = g.matmul(x, w, False)
    total = g.op(elementwise.Add, product, x)
    swish = g.add(activation.Swish.make([total, []])).output
    mean = reduce.ReduceMean.make([swish, g.ints(1)], keep_dims=bool_attr(True))
    model.set_outputs([("sum", total), ("swish", swish), ("mean", g.add(mean).output)])
    return model


def test_each_op_is_computed_wide_and_rounded_once() -> None:
    draw = np.random.default_rng(0)
    narrow = {
        name: convert_values(draw.standard_normal(shape).astype(np.float32), "f32", "bf16")
        for name, shape in (("x", (4, 8)), ("w", (8, 8)))
    }
    wide = {name: convert_values(values, "bf16", "f32") for name, values in narrow.items()}
    found = Interpreter(build("bf16")).run(narrow)
    expected = Interpreter(build("f32")).run(wide)
    for name, values in found.items():
        assert values.dtype == np.uint16
        values = convert_values(values, "bf16", "f32")
        np.testing.assert_allclose(values, expected[name], rtol=0.02, atol=0.02)
    total = convert_values(found["sum"], "bf16", "f32")
    # Each op rounds: the matmul, and then the sum.
    product = convert_values(convert_values(wide["x"] @ wide["w"], "f32", "bf16"), "bf16", "f32")
    rounded = convert_values(product + wide["x"], "f32", "bf16")
    np.testing.assert_array_equal(total, convert_values(rounded, "bf16", "f32"))
