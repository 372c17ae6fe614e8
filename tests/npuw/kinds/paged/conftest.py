"""Tiny models with paged attention, and the real OpenVINO's outputs for sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS

from npuw_layer import Core

NAMES = ("llama_fp16", "gemma2_fp16")
LAYERS = 2


@dataclass(frozen=True)
class Paged:
    """IR of a model, and OpenVINO's logits of last tokens; see tools/make_paged_goldens.py."""

    path: Path
    said: Mapping[str, np.ndarray]
    sequences: Any
    """The module with the sequences of the goldens."""

    def compile(self, **config: object) -> Any:
        """Compile the model for 1, 8 and 16 tokens, by default on numpy."""
        every = {
            "NPUW_PA": "YES",
            "NPUW_DEVICES": "CPU",
            "NPUW_LLM_MAX_PROMPT_LEN": 16,
            "INFERENCE_PRECISION_HINT": "f32",
        }
        return Core().compile_model(self.path, "NPU", every | config)

    def caches(self, compiled: Any) -> dict[str, np.ndarray]:
        """Make empty caches."""
        port = compiled.input("key_cache.0")
        _, heads, _, width = port.get_partial_shape()
        kind = {"f32": np.float32, "f16": np.float16}[port.element_type]
        return self.sequences.caches(heads, width, LAYERS, kind)


@pytest.fixture(scope="session")
def paged(
    load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Paged]:
    """Restore a model by name."""
    folder = GOLDENS / "paged"
    sequences = load_module(folder / "sequences.py")
    restore = load_module(folder / "restore.py").restore

    def restored(name: str) -> Paged:
        path = restore(name, tmp_path_factory.mktemp(name))
        return Paged(path, dict(np.load(folder / f"{name}.npz")), sequences)

    made = {name: restored(name) for name in NAMES}
    return made.__getitem__


@pytest.fixture(scope="session")
def llama(paged: Callable[[str], Paged]) -> Paged:
    """Return the model with grouped heads."""
    return paged("llama_fp16")


@pytest.fixture(scope="session")
def compiled(llama: Paged) -> Any:
    """Compile the model for numpy."""
    return llama.compile()
