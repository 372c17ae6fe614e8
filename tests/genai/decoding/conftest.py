"""Searches on the in-memory runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from genai_layer.decoding.generated_sequence import GeneratedSequence, Limits
from genai_layer.decoding.language_model import LanguageModel
from genai_layer.decoding.methods import decode
from genai_layer.decoding.reads import Drafter, Sink, Task
from genai_layer.decoding.stopwatch import Stopwatch, TokenTimes
from genai_layer.decoding.stored_tokens import StoredTokens
from genai_layer.generation_config import UNSET, GenerationConfig
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.sampling.processors import Constraint
from genai_layer.sinks import NoSink
from genai_layer.testing.memory_runtime import MemoryRequest

Decodes = Callable[..., list[GeneratedSequence]]


@pytest.fixture(scope="module")
def decodes() -> Decodes:
    """Return a function that continues a prompt by a table of logits [vocabulary, vocabulary].

    The text of token n is the letter n of the alphabet.
    """

    def run(
        table: np.ndarray,
        prompt: Sequence[int] = (0,),
        capacity: int = UNSET,
        drafter: Drafter | None = None,
        sink: Sink | None = None,
        constraint: Constraint | None = None,
        **parameters: object,
    ) -> list[GeneratedSequence]:
        config = GenerationConfig(**parameters)
        config.validate()
        raw = RawPerfMetrics()
        memory = MemoryRequest(table.astype(np.float32), 1 << 16)
        return decode(
            Task(
                prompt=list(prompt),
                config=config,
                limits=Limits(config.get_max_new_tokens(len(prompt)), capacity),
                model=LanguageModel(StoredTokens(memory), raw),
                decode=lambda ids: "".join(chr(ord("a") + token) for token in ids),
                sink=sink or NoSink(),
                raw=raw,
                times=TokenTimes(raw, Stopwatch()),
                drafter=drafter,
                constraint=constraint,
            )
        )

    return run
