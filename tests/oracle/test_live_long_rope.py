"""LongRoPE compared to the real NPUW: prompts beyond the original context, whole and in chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS
from tests.oracle.real_npuw import EXACT, EXACTLY, ON_CPU

from npuw_layer import Core

ov = pytest.importorskip("openvino")
pytestmark = pytest.mark.oracle

LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
CHUNKS = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
STEPS = 4


@pytest.fixture(scope="module")
def phi3(restored: Any) -> Path:
    return restored(GOLDENS / "longrope", "phi3_fp16")


def told(request: Any, count: int) -> np.ndarray:
    """Return the logits of a prompt of ``count`` tokens, and of some steps."""
    request.reset_state()
    ids = np.random.default_rng(0).integers(10, 500, (1, count + STEPS))
    found = list[np.ndarray]()
    for begin, end in ((0, count), *((n, n + 1) for n in range(count, count + STEPS))):
        inputs = {
            "input_ids": ids[:, begin:end],
            "attention_mask": np.ones((1, end), np.int64),
            "position_ids": np.arange(begin, end)[None],
            "beam_idx": np.zeros(1, np.int32),
        }
        request.infer(inputs)
        found.append(np.array(request.get_tensor("logits").data[0, -1]))
    return np.array(found)


def error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize(
    ("chunks", "count", "same_there"),
    [({}, 50, True), ({}, 62, True), ({}, 100, True), (CHUNKS, 62, True), (CHUNKS, 100, False)],
    ids=["short", "grows long", "long", "chunks", "long in chunks"],
)
def test_logits_equal_openvinos_and_npuws_differ_for_long_prompts_in_chunks(
    phi3: Path, chunks: dict[str, int], count: int, same_there: bool
) -> None:
    """NPUW chooses the factors of each chunk by the chunk's own positions."""
    core = ov.Core()
    plain = core.compile_model(phi3, "CPU", EXACT).create_infer_request()
    theirs = core.compile_model(core.read_model(phi3), "NPU", ON_CPU | EXACTLY | LENGTHS | chunks)
    own = {"INFERENCE_PRECISION_HINT": "f32", "NPUW_LLM_PREFILL_PYRAMID": "NO"}
    options = LENGTHS | chunks | own
    ours = Core().compile_model(phi3, "NPU", options).create_infer_request()
    expected = told(plain, count)
    assert error(told(ours, count), expected) < 1e-5
    found = error(told(theirs.create_infer_request(), count), expected)
    assert found < 1e-5 if same_there else found > 1e-2
