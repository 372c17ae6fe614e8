"""Greedy texts with and without candidates, on a model whose logits are nearly equal."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from genai_layer import (
    ContinuousBatchingPipeline,
    LLMPipeline,
    SchedulerConfig,
    draft_model,
)
from genai_layer.decoding.payoff import AlwaysPays

LENGTHS = {"MAX_PROMPT_LEN": 64, "MIN_RESPONSE_LEN": 64}
GREEDY = {"max_new_tokens": 60, "ignore_eos": True}
FLIPPED = (13, 23, 46, 59)
"""Seeds of prompts whose texts change if steps of several tokens make close choices."""


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draft candidates for each step, whether they pay or not."""
    monkeypatch.setattr("genai_layer.speculation.request.Payoff", AlwaysPays)


@pytest.fixture(scope="module")
def folder(llama_8m: Path, demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model of random weights, with a tokenizer."""
    target = tmp_path_factory.mktemp("random")
    for file in (*llama_8m.iterdir(), demo / "tokenizer.json", demo / "tokenizer_config.json"):
        shutil.copy(file, target)
    return target


def prompt_of(seed: int) -> list[list[int]]:
    return [np.random.default_rng(seed).integers(0, 2048, 12).tolist()]


def test_prompt_lookup_never_changes_a_greedy_text(folder: Path) -> None:
    pipe = LLMPipeline(folder, "NPU", prompt_lookup=True, **LENGTHS)
    for seed in FLIPPED:
        plain = pipe.generate(prompt_of(seed), **GREEDY)
        pipe._generator.forget_tokens()  # a step reads a repeated prompt's last token; f16 rounds
        found = pipe.generate(prompt_of(seed), num_assistant_tokens=4, max_ngram_size=2, **GREEDY)
        assert found.tokens == plain.tokens


def test_a_draft_never_changes_a_greedy_text(demo: Path) -> None:
    plain = LLMPipeline(demo, "NPU", **LENGTHS)
    drafted = LLMPipeline(demo, "NPU", draft_model=draft_model(demo), **LENGTHS)
    for question in ("What is an NPU?", "Who reads a blob?"):
        found = drafted.generate([question], max_new_tokens=60)
        assert found.texts == plain.generate([question], max_new_tokens=60).texts
        assert found.extended_perf_metrics is not None
        assert found.extended_perf_metrics.get_num_accepted_tokens() > 20


@pytest.mark.parametrize("source", ["draft_model", "prompt_lookup"])
def test_drafts_of_several_requests_change_no_greedy_text(demo: Path, source: str) -> None:
    drafts = {"draft_model": draft_model(demo), "prompt_lookup": True}
    questions = ["What is an NPU?", "Explain prefill. What is prefill? Prefill is"]
    pipe = ContinuousBatchingPipeline(
        demo, SchedulerConfig(), "NPU", {source: drafts[source], **LENGTHS}
    )
    config = pipe.get_config()
    config.max_new_tokens = 40
    if source == "prompt_lookup":
        config.num_assistant_tokens, config.max_ngram_size = 4, 2
    found = pipe.generate(questions, [config] * len(questions))
    alone = LLMPipeline(demo, "NPU", **LENGTHS)
    expected = [alone.generate(each, max_new_tokens=40) for each in questions]
    assert [each.m_generation_ids[0] for each in found] == expected
    steps = [each.perf_metrics.raw_metrics.m_batch_sizes for each in found]
    assert any(max(one) > 1 for one in steps)
