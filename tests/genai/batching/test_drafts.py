"""Drafts in continuous batching: texts are those without candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from tests.genai.batching.conftest import TABLE, greedy, run_steps, scheduler

from genai_layer import (
    ContinuousBatchingPipeline,
    GenerationStatus,
    LLMPipeline,
    PromptError,
    PropertyError,
    draft_model,
)
from genai_layer.testing.memory_batching import BatchingCore
from genai_layer.testing.memory_runtime import MemoryCore

OTHER = np.where(np.random.default_rng(6).random(TABLE.shape) < 0.2, -TABLE, TABLE)
"""Logits of a draft model, which often agree."""
METHODS: list[dict[str, Any]] = [
    {},
    {"logprobs": 1},
    {"stop_token_ids": frozenset(range(0, 260, 9))},
    {"do_sample": True, "temperature": 2.0, "rng_seed": 4},
    {"num_beams": 3, "num_return_sequences": 2},
]
CANDIDATES: list[dict[str, Any]] = [
    {},
    {"num_assistant_tokens": 3, "max_ngram_size": 2},
    {"assistant_confidence_threshold": 0.3},
]
REQUESTS = st.lists(
    st.tuples(
        st.lists(st.integers(6, 250), min_size=1, max_size=6),
        st.integers(1, 9),
        st.sampled_from(METHODS),
        st.sampled_from(CANDIDATES),
    ),
    min_size=1,
    max_size=5,
)
SOURCES = ("draft_model", "prompt_lookup")


def pipeline(folder: Path, source: str, device: str = "CPU", **more: Any) -> Any:
    """Return a pipeline with a source of candidates."""
    drafts: dict[str, Any] = {"prompt_lookup": True}
    if source == "draft_model":
        drafts = {source: draft_model(folder, core=MemoryCore(OTHER), **more)}
    config = scheduler(max_num_seqs=3)
    core = BatchingCore(TABLE)
    return ContinuousBatchingPipeline(folder, config, device, drafts | more, core=core)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SOURCES), REQUESTS, st.booleans())
def test_requests_have_the_tokens_without_candidates(
    toy_folder: Path, alone: LLMPipeline, source: str, requests: list[Any], cancels: bool
) -> None:
    pipe = pipeline(toy_folder, source)
    handles: list[Any] = []
    for number, (ids, tokens, method, candidates) in enumerate(requests):
        fits = (source == "prompt_lookup") == ("max_ngram_size" in candidates)
        given = candidates if fits and "num_beams" not in method else {}
        handles.append(pipe.add_request(number, ids, greedy(tokens, **method, **given)))
        pipe.step()
    if cancels:
        handles[0].cancel()
    run_steps(pipe)
    for handle, (ids, tokens, method, _) in [*zip(handles, requests, strict=True)][cancels:]:
        assert handle.get_status() is GenerationStatus.FINISHED
        outputs, expected = handle.read_all(), alone.generate([ids], greedy(tokens, **method))
        assert [one.generated_ids for one in outputs] == expected.tokens
        assert [one.score for one in outputs] == expected.scores


def test_results_have_the_metrics_of_both_models(toy_folder: Path) -> None:
    pipe = pipeline(toy_folder, "draft_model")
    one, two = pipe.generate(["a", "b"], [greedy(9), greedy(5)])
    counts = [each.extended_perf_metrics.get_num_generated_tokens() for each in (one, two)]
    assert counts == [9, 5]
    assert one.extended_perf_metrics.get_num_draft_tokens() > 0
    ids = pipe.generate([[7, 8]], [greedy(4)])[0]
    assert ids.extended_perf_metrics.main_model_metrics.get_num_generated_tokens() == 4
    lookup = pipeline(toy_folder, "prompt_lookup")
    assert lookup.generate("a", greedy(4))[0].extended_perf_metrics is None


def test_an_npu_verifies_candidates_in_one_step(toy_folder: Path) -> None:
    core = BatchingCore(TABLE)
    drafts = {"draft_model": draft_model(toy_folder, core=MemoryCore(OTHER))}
    pipe = ContinuousBatchingPipeline(toy_folder, scheduler(), "NPU", drafts, core=core)
    assert core.config["NPUW_LLM_MAX_GENERATION_TOKEN_LEN"] == 11
    assert "NPUW_LLM_BATCH_SLOTS" not in core.config
    assert len(pipe.generate("a", greedy(9))[0].m_generation_ids) == 1


def test_a_prompt_too_long_for_the_draft_is_rejected(toy_folder: Path) -> None:
    drafts = {"draft_model": draft_model(toy_folder, core=MemoryCore(OTHER), MAX_PROMPT_LEN=4)}
    pipe = ContinuousBatchingPipeline(
        toy_folder, scheduler(), "NPU", drafts, core=BatchingCore(TABLE)
    )
    with pytest.raises(PromptError, match="MAX_PROMPT_LEN=4"):
        pipe.generate([[7, 8, 9, 10, 11]], [greedy()])
    assert not pipe.has_non_finished_requests()


def test_two_sources_exclude_each_other(toy_folder: Path) -> None:
    drafts = {"draft_model": draft_model(toy_folder), "prompt_lookup": True}
    with pytest.raises(PropertyError, match="exclude each other"):
        ContinuousBatchingPipeline(toy_folder, scheduler(), "CPU", drafts)
