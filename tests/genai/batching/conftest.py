"""Pipelines on the in-memory runtime, with and without the ability to batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genai_layer import ContinuousBatchingPipeline, GenerationConfig, LLMPipeline, SchedulerConfig
from genai_layer.testing.memory_batching import BatchingCore
from genai_layer.testing.memory_runtime import MemoryCore
from genai_layer.testing.toy import make_tokenizer, write_toy_folder

Pipes = Callable[..., ContinuousBatchingPipeline]

_SIZE = make_tokenizer().get_vocab_size()
TABLE = (np.random.default_rng(5).normal(size=(_SIZE, _SIZE)) * 3).astype(np.float32)
"""Logits by the last token; texts of letters, without an end."""
CORES = {"in turn": MemoryCore, "batched": BatchingCore}


def greedy(tokens: int = 5, **values: Any) -> GenerationConfig:
    return GenerationConfig(max_new_tokens=tokens, **values)


def scheduler(**settings: Any) -> SchedulerConfig:
    config = SchedulerConfig()
    for name, value in settings.items():
        setattr(config, name, value)
    return config


def run_steps(pipe: ContinuousBatchingPipeline, most: int = 200) -> int:
    """Run steps until all requests have ended; return their number."""
    for count in range(most):
        if not pipe.has_non_finished_requests():
            return count
        pipe.step()
    raise AssertionError(f"requests have not ended after {most} steps")


@pytest.fixture(scope="session")
def toy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_folder(tmp_path_factory.mktemp("toy"))


@pytest.fixture(params=CORES)
def pipes(request: pytest.FixtureRequest, toy_folder: Path) -> Pipes:
    """Return a function that creates a pipeline with settings of the scheduler."""

    def make(capacity: int = 1 << 16, **settings: Any) -> ContinuousBatchingPipeline:
        core = CORES[request.param](TABLE, capacity)
        return ContinuousBatchingPipeline(toy_folder, scheduler(**settings), "CPU", core=core)

    return make


@pytest.fixture(scope="session")
def alone(toy_folder: Path) -> LLMPipeline:
    """Return the pipeline of one generation at a time."""
    return LLMPipeline(toy_folder, "CPU", core=MemoryCore(TABLE))
