"""Models that OpenVINO serializes, compiled by the driver: results as of OpenVINO's CPU plugin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op
from tests.compiler.in_driver.caller import COUNTED, Caller
from tests.oracle.real_npuw import EXACT

from compiler_layer.in_driver.compiler import DriverCompiler
from compiler_layer.in_driver.serialized_model import write_serialized_model
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.ze import graph_compiler

pytestmark = pytest.mark.oracle

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def perceptron() -> ov.Model:
    """Return two layers, f16 weights, and a result in f16."""
    x = op.parameter([2, 64], np.float32, name="x")
    hidden = x
    for width in (96, 10):
        inner = hidden.get_output_shape(0)[1]
        w = op.constant((numbers(width, inner) / 8).astype(np.float16))
        hidden = op.relu(op.matmul(hidden, op.convert(w, np.float32), False, True))
    narrow = op.convert(op.softmax(hidden, 1), np.float16)
    return ov.Model([op.result(narrow), op.result(hidden)], [x], "perceptron")


def convolution() -> ov.Model:
    x = op.parameter([1, 3, 12, 12], np.float32, name="x")
    filters = op.constant(numbers(8, 3, 3, 3) / 4)
    y = op.relu(op.convolution(x, filters, [1, 1], [1, 1], [1, 1], [1, 1]))
    mean = op.reduce_mean(y, op.constant([2, 3]), False)
    return ov.Model([op.result(mean)], [x], "convolution")


def serialized(model: ov.Model, folder: Path) -> bytes:
    """Serialize a model as the plugin does."""
    copy = model.clone()
    for name in COUNTED:
        copy.set_rt_info(True, name)
    xml = folder / "model.xml"
    ov.serialize(copy, xml)
    weights = xml.with_suffix(".bin").read_bytes()
    return write_serialized_model(DriverCompiler.version, xml.read_bytes(), weights)


def flags(model: ov.Model) -> str:
    """Request the model's own types, as the plugin does."""
    names = {"f32": "FP32", "f16": "FP16", "i64": "I64"}
    ranks = ("**SCALAR**", "C", "NC", "CHW", "NCHW")

    def requests(kind: str, ports: Sequence[ov.Output]) -> str:
        kinds = [f"{i}:{names[p.element_type.to_string()]}" for i, p in enumerate(ports)]
        layouts = [f"{i}:{ranks[len(p.shape)]}" for i, p in enumerate(ports)]
        return f'--{kind}_precisions="{" ".join(kinds)}" --{kind}_layouts="{" ".join(layouts)}"'

    return (
        f"{requests('inputs', model.inputs)} {requests('outputs', model.outputs)} "
        '--config NPU_MAX_TILES="6" NPU_STEPPING="0" NPU_BATCH_MODE="COMPILER" NPU_PLATFORM="4000" '
    )


@pytest.mark.parametrize("make", [perceptron, convolution])
def test_results_and_types_are_those_of_openvino(make, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(graph_compiler, "installed_compiler", DriverCompiler)
    model, caller = make(), Caller()
    x = numbers(*model.inputs[0].shape)
    content = serialized(model, tmp_path)
    actual = caller.infer(caller.graph(content, flags(model)), x)
    expected = list(ov.Core().compile_model(model, "CPU", EXACT)(x).values())
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert np.allclose(ours, theirs, rtol=1e-2, atol=1e-2)
    names = {each.get_friendly_name() for each in model.get_ops()}
    assert {*DriverCompiler().query(memoryview(content), "", PLATFORMS["4000"])} == names
