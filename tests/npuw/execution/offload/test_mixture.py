"""Offload of a mixture: all experts of a layer are copied with it for any token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core

EXPORTED = Path(__file__).resolve().parents[3] / "goldens" / "exported"
NAME = "qwen3_moe_deep_fp16"
OPTIONS = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_PYRAMID": "NO",
    "INFERENCE_PRECISION_HINT": "f32",
}


@pytest.fixture(scope="module")
def mixture(load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the real exporter's IR of Qwen3-MoE: five layers of sixteen experts."""
    restore = load_module(EXPORTED / "restore.py").restore
    return restore(EXPORTED, NAME, tmp_path_factory.mktemp(NAME))


@pytest.mark.long
@pytest.mark.parametrize("mode", ["SYNC", "ASYNC"])
def test_results_equal_openvino_with_weights_of_two_layers_in_memory(mixture, mode) -> None:
    expected = np.load(EXPORTED / f"{NAME}.npz")
    compiled = Core().compile_model(mixture, "NPU", OPTIONS | {"NPUW_WEIGHTS_OFFLOAD": mode})
    request = compiled.create_infer_request()
    told = [expected["prompt_100"], *(np.array([[token]]) for token in expected["greedy"][:-1])]
    logits: list[np.ndarray] = []
    end = 0
    for new in told:
        begin, end = end, end + new.shape[1]
        fed = {
            "input_ids": new,
            "attention_mask": np.ones((1, end), np.int64),
            "position_ids": np.arange(begin, end)[None],
        }
        logits.append(request.infer(fed)["logits"][0, -1])
    assert error(logits[0], expected["logits_100"]) <= 1e-4
    assert error(logits[-1], expected["logits_greedy"]) <= 1e-4
    report = compiled.offload_report()
    assert report is not None
    assert (report.layers, report.moving, report.slots) == (5, 5, 2)
    assert report.device_bytes < report.weight_bytes / 2


def error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())
