"""A folder of each family, split and compiled, computes transformers' logits on the NPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.covering import beside_by_turns

from npuw_layer import Core

GOLDENS = Path(__file__).resolve().parents[3] / "goldens"
MODELS = sorted(path.stem.removeprefix("families_") for path in GOLDENS.glob("families_*.npz"))


TOLERANCES = {"f32": 1e-4, "f16": 3e-2}
"""Tolerance of logits, by precision; weights and scores of these models are large."""


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "precision"), beside_by_turns(MODELS, [*TOLERANCES]))
def test_a_conversation_on_the_device_has_the_logits_of_transformers(
    families: Any, folder_of: Callable[..., Path], name: str, precision: str
) -> None:
    lengths = {
        "NPUW_LLM_MAX_PROMPT_LEN": 64,
        "NPUW_LLM_MIN_RESPONSE_LEN": 64,
        "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES",
        "NPUW_LLM_PREFILL_PYRAMID": "NO",
        "NPUW_LLM_GENERATE_PYRAMID": "NO",
    }
    options = lengths | {"INFERENCE_PRECISION_HINT": precision}
    request = Core().compile_model(folder_of(name), "NPU", options).create_infer_request()
    ids = families.prompt(families.descriptions()[name]["config"], 100)
    expected = np.load(GOLDENS / f"families_{name}.npz")["logits_100"]
    rows = families.recorded_rows(100).tolist()
    # Two prompts, then token by token; rows of a static cache are no measure of a window.
    ends = [10, 46, *range(47, 74)]
    for begin, end in zip([0, *ends], ends, strict=False):
        inputs = {
            "input_ids": ids[:, begin:end],
            "attention_mask": np.ones((1, end), np.int64),
            "position_ids": np.arange(begin, end)[None],
        }
        logits = request.infer(inputs)["logits"][0, -1]
        if end - 1 in rows:
            error = np.abs(logits - expected[rows.index(end - 1)]).max()
            assert error <= TOLERANCES[precision] * np.abs(expected).max()
