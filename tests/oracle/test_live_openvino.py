"""The stack compared to the real OpenVINO, live, on random prompts.

Golden files store fixed results of an oracle; these tests query it directly, in conversations of
several turns with a reset between them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from tests.covering import each_architecture_once

from npuw_layer import Core

pytestmark = pytest.mark.oracle

EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
EXPORTED = Path(__file__).resolve().parent.parent / "goldens" / "exported"
EXPORTED_NAMES = sorted(path.name.removesuffix(".xml.xz") for path in EXPORTED.glob("*.xml.xz"))
LENGTHS = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES",
}


def ask(request: Any, ids: np.ndarray, past: int) -> np.ndarray:
    count = ids.shape[1]
    inputs = {
        "input_ids": ids,
        "attention_mask": np.ones((1, past + count), np.int64),
        "position_ids": np.arange(past, past + count)[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    if isinstance(request, ov.InferRequest):
        # A model that derives positions from its mask has no such input.
        known = {name for port in request.get_compiled_model().inputs for name in port.names}
        inputs = {name: value for name, value in inputs.items() if name in known}
    request.infer(inputs)
    return np.array(request.get_tensor("logits").data[0, -1])


def check_conversations(path: Path, seed: int) -> None:
    """Compare two conversations of several turns, with a reset between them."""
    real = ov.Core().compile_model(path, "CPU", EXACT)
    vocabulary = real.output("logits").partial_shape[2].get_length()
    theirs = real.create_infer_request()
    options = LENGTHS | {"INFERENCE_PRECISION_HINT": "f32"}
    ours = Core().compile_model(path, "NPU", options).create_infer_request()
    draw = np.random.default_rng(seed)
    for _ in range(2):
        theirs.reset_state()
        ours.reset_state()
        past = 0
        for count in (int(draw.integers(1, 100)), 1, 1, int(draw.integers(2, 12)), 1):
            ids = draw.integers(0, vocabulary, (1, count))
            expected, found = ask(theirs, ids, past), ask(ours, ids, past)
            error = np.abs(found - expected).max() / np.abs(expected).max()
            assert error <= 1e-4, f"{count} tokens after {past}: {error:.1e}"
            past += count


@pytest.mark.parametrize("model", ["llama_8m_ir", "demo_ir"])
@pytest.mark.parametrize("seed", range(4))
def test_conversations_agree(request: pytest.FixtureRequest, model: str, seed: int) -> None:
    check_conversations(request.getfixturevalue(model), seed)


@pytest.mark.parametrize(
    "name",
    [*each_architecture_once(EXPORTED_NAMES, first=1), "mixtral_int8"],  # NPUW runs no Mixtral
)
def test_conversations_with_exported_models_agree(
    name: str, load_module: Callable[[Path], Any], tmp_path: Path
) -> None:
    """Windows slide beyond the first tokens.

    Each architecture is compared in a precision; tests/stack/test_exported_ir.py and
    test_live_npuw.py compare it in the others.
    """
    path = load_module(EXPORTED / "restore.py").restore(EXPORTED, name, tmp_path)
    check_conversations(path, len(name))
