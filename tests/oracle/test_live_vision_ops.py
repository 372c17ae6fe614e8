"""Resampling and softmax along any axis, compared to the real OpenVINO on the same IR."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset15 as op
import pytest

from compiler_layer.dialects.ov.interpolate import COORDINATE_TRANSFORMATION_MODES, NEAREST_MODES
from npuw_layer import Core

pytestmark = pytest.mark.oracle

SHAPE = (1, 4, 5, 6)
TOLERANCE = {"f32": 1e-6, "f16": 2e-3}
"""Relative to the largest value; two units in the last place of f16."""


def resampled(x: Any) -> Iterator[Any]:
    """Yield resamplings up and down, with all modes that the op has."""
    axes = op.constant(np.array([2, 3]))
    sizes, scales = np.array([7, 3], np.int32), np.array([2, 1.3], np.float32)
    for mode in ("nearest", "linear", "linear_onnx"):
        for places in COORDINATE_TRANSFORMATION_MODES:
            for rounding in NEAREST_MODES if mode == "nearest" else ("floor",):
                said = (mode, "sizes", [0] * 4, [0] * 4, places, rounding, False, -0.75, axes)
                yield op.interpolate(x, op.constant(sizes), *said)
                said = (mode, "scales", *said[2:])
                yield op.interpolate(x, op.constant(scales), *said)


def softmaxes(x: Any) -> Iterator[Any]:
    """Yield softmax and its logarithm along each axis."""
    for axis in range(-1, len(SHAPE)):
        yield op.softmax(x, axis)
        yield op.log_softmax(x, axis)


def segmenter(x: Any) -> Iterator[Any]:
    """Yield probabilities of classes, from features of fewer pixels."""
    draw = np.random.default_rng(1)
    filters = op.constant(draw.standard_normal((3, 4, 1, 1)).astype(np.float32))
    ends = [0, 0], [0, 0]
    scores = op.convolution(x, filters, [1, 1], *ends, [1, 1])
    axes, sizes = op.constant(np.array([2, 3])), op.constant(np.array([20, 24]))
    wide = op.interpolate(scores, sizes, "linear_onnx", "sizes", axes=axes)
    yield op.softmax(wide, 1)


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("make", [resampled, softmaxes, segmenter])
def test_values_equal_openvinos(tmp_path: Path, make: Any, precision: str) -> None:
    parameter = op.parameter(SHAPE, np.float32, name="x")
    model = ov.Model([*make(parameter)], [parameter])
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([x])
    ours = Core().compile_model(
        tmp_path / "model.xml", "NPU", {"INFERENCE_PRECISION_HINT": precision}
    )([x])
    for number, found in enumerate(ours.values()):
        largest = max(1.0, float(np.abs(expected[number]).max()))
        error = np.abs(found - expected[number]).max() / largest
        assert error <= TOLERANCE[precision], f"{model.outputs[number].get_node()}: {error:.1e}"
