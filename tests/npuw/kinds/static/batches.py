"""Common parts of batch tests: models of any batch, and values for items of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import activation, elementwise
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model

EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
PLUGIN, COMPILER = ({"NPU_BATCH_MODE": mode} for mode in ("PLUGIN", "COMPILER"))
WIDTH, OUT = 16, 8

Arrays = Mapping[str, np.ndarray]


def scorer(batch: int) -> Model:
    """Build a model that looks up rows, scales and multiplies them; two input and output types."""
    draw = np.random.default_rng(7)
    shapes = [("ids", tensor("i64", (batch, 3))), ("gain", tensor("f32", (batch, 3, WIDTH)))]
    model, (ids, gain) = Model.build(shapes)
    g = GraphBuilder(model)
    table = g.constant(draw.standard_normal((32, WIDTH)).astype(np.float32))
    weights = g.constant(draw.standard_normal((WIDTH, OUT)).astype(np.float32))
    hidden = g.op(elementwise.Multiply, g.gather(table, ids, 0), gain, name="hidden")
    scores = g.matmul(g.op(activation.Relu, hidden), weights, False, name="scores")
    model.set_outputs([("scores", scores), ("codes", g.convert(hidden, "i8", "codes"))])
    return model


def doubled(batch: int) -> Model:
    model, (x,) = Model.build([("x", tensor("f32", (batch, 4)))])
    model.set_outputs([("y", GraphBuilder(model).times(x, 2))])
    return model


def items(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    draw = np.random.default_rng((seed, count))
    gain = draw.standard_normal((count, 3, WIDTH)).astype(np.float32)
    return {"ids": draw.integers(0, 32, (count, 3)), "gain": gain}


def of_item(inputs: Arrays, number: int) -> dict[str, np.ndarray]:
    return {name: values[number : number + 1] for name, values in inputs.items()}


def outcome(compiled: Any, inputs: Arrays) -> dict[str, np.ndarray]:
    return dict(compiled.create_infer_request().infer(inputs).items())


def assert_same(found: Arrays, expected: Arrays) -> None:
    assert {str(name) for name in found} == {str(name) for name in expected}
    for name, values in expected.items():
        assert np.array_equal(found[name], values), name
