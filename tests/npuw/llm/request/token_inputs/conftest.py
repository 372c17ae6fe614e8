"""Language parts of vision-language models, as exported: they take embeddings, not ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core

VLM = Path(__file__).resolve().parents[4] / "goldens" / "exported" / "vlm"
SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "INFERENCE_PRECISION_HINT": "f32",
}


class Seen:
    """A request that reads random tokens, identified by their numbers."""

    def __init__(self, request: Any, drawn: Any) -> None:
        self.request = request
        self.drawn = drawn

    def tell(self, begin: int, end: int | None = None, **changed: np.ndarray) -> np.ndarray:
        """Read tokens after all tokens before them; return the last one's logits."""
        given = self.drawn.inputs(begin, begin + 1 if end is None else end)
        return np.array(self.request.infer({**given, **changed})["logits"][0, -1])

    @property
    def cached_tokens(self) -> int:
        return int(self.request.execution_report()["prefix cache"].split()[0])


class Model:
    """One of the models, and OpenVINO's logits for it."""

    def __init__(self, name: str, path: Path, goldens: dict[str, np.ndarray], drawn: Any) -> None:
        self.path = path
        self.goldens = goldens
        self.axes = int(goldens["position_axes"])
        self.beside = [*map(str, goldens.get("beside", ()))]
        self._drawn = drawn
        self._compiled: dict[str, Any] = {}

    def compiled(self, **options: Any) -> Any:
        key = repr(sorted(options.items()))
        if key not in self._compiled:
            self._compiled[key] = Core().compile_model(self.path, "NPU", SMALL | options)
        return self._compiled[key]

    def begin(self, seed: int = 3, **options: Any) -> Seen:
        """Start a conversation; models are compiled once per configuration."""
        return self.of(self.compiled(**options), seed)

    def of(self, compiled: Any, seed: int = 3) -> Seen:
        return Seen(compiled.create_infer_request(), self._drawn(self.axes, seed, self.beside))


@pytest.fixture(scope="session")
def models(
    load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Model]:
    restore = load_module(VLM.parent / "restore.py").restore
    drawn = load_module(VLM / "drawn.py").Drawn
    known: dict[str, Model] = {}

    def model(name: str) -> Model:
        if name not in known:
            path = restore(VLM, name, tmp_path_factory.mktemp(name))
            known[name] = Model(name, path, dict(np.load(VLM / f"{name}.npz")), drawn)
        return known[name]

    return model


@pytest.fixture(scope="session")
def llava(models: Callable[[str], Model]) -> Model:
    """Return the model whose positions count tokens."""
    return models("llava")


@pytest.fixture(scope="session")
def qwen(models: Callable[[str], Model]) -> Model:
    """Return the model whose positions have three axes (M-RoPE)."""
    return models("qwen2_vl")


@pytest.fixture(scope="session")
def qwen3(models: Callable[[str], Model]) -> Model:
    """Return the model whose image features go to three layers."""
    return models("qwen3_vl")


@pytest.fixture(scope="session")
def gemma3n(models: Callable[[str], Model]) -> Model:
    """Return the model with per-layer inputs of each token."""
    return models("gemma3n")


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max())


@pytest.fixture
def core() -> Core:
    return Core()
