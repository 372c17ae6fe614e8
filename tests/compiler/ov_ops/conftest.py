"""Compares one op with the real OpenVINO.

A small model is made with OpenVINO's own API, saved as IR, and run twice: by OpenVINO on the CPU,
and by our reader and interpreter; what our writer makes of it OpenVINO runs to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset15 as op
import pytest
from hypothesis import settings

from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.writers.openvino_ir import write_ir

CORE = ov.Core()

settings.register_profile("oracle", max_examples=8, deadline=None, derandomize=True)
settings.load_profile("oracle")


def check_one(
    folder: Path, build: Callable[..., object], *inputs: np.ndarray, rtol: float = 1e-5
) -> None:
    """Compare both runtimes on one op, read and written; ``inputs`` are its parameters."""
    parameters = [
        op.parameter(list(x.shape), ov.Type(x.dtype), name=f"p{i}") for i, x in enumerate(inputs)
    ]
    for parameter, name in zip(parameters, "abcdefg", strict=False):
        parameter.output(0).set_names({name})
    node = build(*parameters)
    outputs = list(node.outputs())
    for index, output in enumerate(outputs):
        output.set_names({f"y{index}"})
    model = ov.Model([op.result(output) for output in outputs], parameters, "one_op")
    path = folder / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    compiled = CORE.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    expected = [np.array(v) for v in compiled(list(inputs)).values()]
    feeds = dict(zip("abcdefg", inputs, strict=False))
    ours = read_ir(path)
    ours.verify()
    actual = Interpreter(ours).run(feeds)
    written = folder / "written.xml"
    write_ir(ours, written)
    again = CORE.compile_model(written, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    for values, others in zip(expected, again(list(inputs)).values(), strict=True):
        np.testing.assert_array_equal(values, others)
    for index, values in enumerate(expected):
        result = actual[f"y{index}"]
        assert result.shape == values.shape
        assert result.dtype == values.dtype
        np.testing.assert_allclose(result, values, rtol=rtol, atol=rtol)


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Compare the op that a function builds from parameters: ``check(build, *inputs)``."""
    return partial(check_one, tmp_path_factory.mktemp("ops"))
