"""Servers' parts on the in-memory runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genai_layer import GenerationConfig
from genai_layer.serve.engine.activity import Activity, Commons
from genai_layer.serve.engine.running import RunningRequest
from genai_layer.serve.limits import Limits
from genai_layer.serve.metrics import Metrics
from genai_layer.serve.models.opening import Finish, open_model
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.models.spec import ModelSpec
from genai_layer.testing.memory_batching import BatchingCore
from genai_layer.testing.toy import make_tokenizer, write_toy_folder

_SIZE = make_tokenizer().get_vocab_size()
TABLE = (np.random.default_rng(5).normal(size=(_SIZE, _SIZE)) * 3).astype(np.float32)
"""Logits by the last token; texts of letters, without an end."""


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    write_toy_folder(folder)
    (folder / "model.safetensors").write_bytes(bytes(100))
    return folder


@dataclass
class Parts:
    """Registry of toys, with what its models share."""

    models: ModelRegistry
    commons: Commons
    opened: list[str] = field(default_factory=list[str])


@pytest.fixture
def parts(toy: Path) -> Callable[..., Parts]:
    """Return a function that makes a registry of toys; call it in the event loop's thread."""

    def make(
        *names: str,
        slots: int = 2,
        max_bytes: int | None = None,
        before: Callable[[], None] = lambda: None,
        **limits: Any,
    ) -> Parts:
        opened: list[str] = []

        def opens(spec: ModelSpec) -> Finish:
            before()
            opened.append(spec.name)
            return open_model(spec, BatchingCore(TABLE))

        commons = Commons(Limits(**limits), Metrics(), Activity())
        specs = [ModelSpec(name, "text", toy, "CPU", {}, slots) for name in names or ("toy",)]
        return Parts(ModelRegistry(specs, commons, max_bytes, opens), commons, opened)

    return make


def greedy(tokens: int = 5, **values: Any) -> GenerationConfig:
    return GenerationConfig(max_new_tokens=tokens, **values)


async def text_of(running: RunningRequest) -> str:
    return "".join([chunk.text async for chunk in running])


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))
