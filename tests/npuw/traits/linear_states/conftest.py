"""LFM-2 as the real exporter wrote it, and OpenVINO's outputs for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS
from tests.npuw.conftest import Talk

from npuw_layer import Core
from npuw_layer.backends.interpreter import InterpreterDevice

LINEAR = GOLDENS / "linear"
PROMPT = 50
LENGTHS = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "INFERENCE_PRECISION_HINT": "f32",
}
CHUNKED = LENGTHS | {"NPUW_LLM_PREFILL_CHUNK_SIZE": 16, "NPUW_LLM_PREFILL_PYRAMID": "NO"}
SEVERAL_LENGTHS = CHUNKED | {"NPUW_LLM_PREFILL_PYRAMID": "YES"}


@pytest.fixture(scope="session")
def lfm2(restored: Callable[[Path, str], Path]) -> Callable[[str], Path]:
    """Return a function that finds the IR of a precision."""
    return lambda precision: restored(LINEAR, f"lfm2_{precision}")


@pytest.fixture(scope="session")
def said() -> Callable[[str], Mapping[str, np.ndarray]]:
    """Return a function that loads OpenVINO's results: ids, logits of prompt and tokens, states."""
    return lambda precision: dict(np.load(LINEAR / f"lfm2_{precision}.npz"))


@pytest.fixture(scope="session")
def begin(lfm2: Callable[[str], Path]) -> Callable[..., Talk]:
    """Return a function that starts a conversation on the interpreter; models are compiled once."""
    compiled: dict[str, Any] = {}

    def start(**options: Any) -> Talk:
        key = repr(sorted(options.items()))
        if key not in compiled:
            core = Core(device=InterpreterDevice())
            compiled[key] = core.compile_model(lfm2("fp16"), "NPU", SEVERAL_LENGTHS | options)
        return Talk(compiled[key].create_infer_request())

    return start


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the largest expected value."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())
