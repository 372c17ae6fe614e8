"""A tiny model as exported blobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import CompiledModel, Core

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 128,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 32,
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": "128,192",
}

Speak = Callable[[CompiledModel], np.ndarray]


@pytest.fixture(scope="module")
def exporters(tiny) -> dict[str, CompiledModel]:
    """Return compiled models, without and with weights in their programs; they stay alive."""
    return {
        mode: Core().compile_model(tiny, "NPU", SMALL | {"CACHE_MODE": mode})
        for mode in ("OPTIMIZE_SIZE", "OPTIMIZE_SPEED")
    }


@pytest.fixture(scope="module")
def blobs(exporters, tmp_path_factory) -> dict[str, Path]:
    """Return the files of the exported models."""
    folder = tmp_path_factory.mktemp("blobs")
    for mode, compiled in exporters.items():
        compiled.export_model(folder / f"{mode}.blob")
    return {mode: folder / f"{mode}.blob" for mode in exporters}


@pytest.fixture
def speak() -> Speak:
    """Run a prompt of two chunks and some tokens; return all logits."""

    def say(compiled: CompiledModel) -> np.ndarray:
        request = compiled.create_infer_request()
        said, new = 0, [number % 90 for number in range(40)]
        logits: list[Any] = []
        for _ in range(5):
            count = len(new)
            inputs = {
                "input_ids": np.array([new]),
                "attention_mask": np.ones((1, said + count), np.int64),
                "position_ids": np.arange(said, said + count)[None],
            }
            logits.append(request.infer(inputs)["logits"].copy())
            said += count
            new = [int(logits[-1][0, -1].argmax())]
        return np.stack(logits)

    return say
