"""Rows quantized at run time: one kernel, and its results for the smallest rows."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.pipeline import Options, lower
from compiler_layer.quantize.rows import quantize_rows
from compiler_layer.reference.interpreter import Interpreter

ROWS = np.array([[0, 0, 0, 0], [1e-9, 0, 0, 0], [1, -2, 0.5, 0.25], [3e4, -1, 2, 1e4]], np.float32)


def quantising() -> Model:
    model, (x,) = Model.build([("x", tensor("f32", ROWS.shape))])
    g = GraphBuilder(model)
    rows = quantize_rows(g, x)
    back = g.op(Dequantize, rows.values, rows.scales, [], destination_type=StringAttr("f32"))
    model.set_outputs([("values", rows.values), ("scales", rows.scales), ("back", back)])
    return model


@pytest.mark.parametrize("precision", ["f32", "f16"])
def test_every_row_is_within_half_a_step_in_any_precision(precision: str) -> None:
    model = quantising()
    lower(model, Options(precision=precision))
    found = Interpreter(model).run({"x": ROWS})
    step = np.abs(ROWS).max(1, keepdims=True) / 127 + 2.0**-24
    assert np.isfinite(found["scales"]).all()
    assert (np.abs(found["back"] - ROWS) <= step * (0.51 if precision == "f32" else 0.6)).all()
    assert (found["values"][0] == 0).all()


def test_scales_and_rounding_are_one_kernel() -> None:
    model = quantising()
    lower(model, Options(precision="f32"))
    assert len([op for op in model.body.ops if isinstance(op, npu.Kernel)]) == 1
