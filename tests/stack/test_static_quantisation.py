"""W8A8 with static ranges on the complete stack: exported by npuc, compared to OpenVINO."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest

from compiler_layer.tools.npuc import main as npuc

EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
IDS = np.random.default_rng(5).integers(3, 2000, (1, 40))


def exported(model: Path, folder: Path, *options: object) -> Path:
    argv = ["export", model, folder, "--weight-format", "int8", *options]
    assert npuc([str(each) for each in argv]) == 0
    return folder / "openvino_model.xml"


def openvino_says(path: Path) -> np.ndarray:
    inputs = {
        "input_ids": IDS,
        "attention_mask": np.ones_like(IDS),
        "position_ids": np.arange(IDS.shape[1])[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    return ov.Core().compile_model(path, "CPU", EXACT)(inputs)["logits"][0, -1]


@pytest.fixture
def first_layer(demo: Path, tmp_path: Path) -> Path:
    """Demo model with only its first layer."""
    folder = shutil.copytree(demo, tmp_path / "first_layer")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 1}))
    return folder


def test_a_layer_on_the_device_computes_what_openvino_computes(
    first_layer: Path, tmp_path: Path, converse: Callable[..., Any]
) -> None:
    """Activations are rounded to the same steps: an error of one step would exceed 1e-3."""
    path = exported(first_layer, tmp_path / "w8a8", "--quant-mode", "int8")
    expected = openvino_says(path)
    found = converse(path, INFERENCE_PRECISION_HINT="f32").tell(IDS)
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()
    floats = openvino_says(exported(first_layer, tmp_path / "w8"))
    assert np.abs(expected - floats).max() >= 1e-3 * np.abs(expected).max()


@pytest.mark.long
@pytest.mark.parametrize("precision", ["f32", "f16"])
def test_a_complete_model_stays_within_its_rounding_noise(
    demo: Path, tmp_path: Path, converse: Callable[..., Any], precision: str
) -> None:
    """From layer to layer, values halfway between steps round differently, also within OpenVINO."""
    path = exported(demo, tmp_path / "w8a8", "--quant-mode", "int8")
    a = openvino_says(path).astype(np.float64)
    b = converse(path, INFERENCE_PRECISION_HINT=precision).tell(IDS).astype(np.float64)
    assert a @ b / np.sqrt((a @ a) * (b @ b)) >= 0.998
