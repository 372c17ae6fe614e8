"""Models that read texts, as the real exporter wrote them, and OpenVINO's outputs for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core

GOLDENS = Path(__file__).resolve().parents[3] / "goldens"
TEXTS = GOLDENS / "texts"

EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 32,
}
"""Chunks so short that a text takes several, and exact arithmetic for comparison."""

RANKS = ("xlmr", "qwen3_score")
"""Models that return logits of a text; all others return hidden states of tokens."""


@pytest.fixture(scope="session")
def text_model(restored: Callable[[Path, str], Path]) -> Callable[[str], Path]:
    """Return a function that finds the IR of a name."""
    return lambda name: restored(TEXTS, name)


@pytest.fixture(scope="session")
def said() -> Callable[[str], dict[str, np.ndarray]]:
    """Return a function that loads OpenVINO's outputs for an IR."""
    return lambda name: dict(np.load(TEXTS / f"{name}.npz"))


@pytest.fixture(scope="session")
def compiled(text_model: Callable[[str], Path]) -> Callable[..., Any]:
    """Return a function that compiles a model by name, once for equal options."""
    known: dict[str, Any] = {}

    def give(name: str, **options: Any) -> Any:
        kind = "NPUW_TEXT_RERANK" if name in RANKS else "NPUW_TEXT_EMBED"
        key = f"{name} {sorted(options.items())}"
        if key not in known:
            config = {**EXACT, kind: "YES", **options}
            known[key] = Core().compile_model(text_model(name), "NPU", config)
        return known[key]

    return give
