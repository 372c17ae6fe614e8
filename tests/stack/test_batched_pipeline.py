"""Continuous batching through the whole stack: requests in the batch slots of the simulated NPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from genai_layer import ContinuousBatchingPipeline, GenerationConfig, LLMPipeline, SchedulerConfig
from genai_layer.testing.check_batching import check_batching
from npuw_layer import Core

LENGTHS = {"MAX_PROMPT_LEN": 128, "MIN_RESPONSE_LEN": 64, "INFERENCE_PRECISION_HINT": "f32"}
QUESTIONS = ["What is an NPU?", "Who reads a blob?", "What is a blob?", "Why?", "Hello."]
METHODS: list[dict[str, Any]] = [
    {"max_new_tokens": 16},
    {"max_new_tokens": 5},
    {"max_new_tokens": 16, "stop_strings": {"program"}},
    {"max_new_tokens": 5, "num_beams": 3, "num_return_sequences": 2},
    {"max_new_tokens": 8, "repetition_penalty": 1.2},
]
SEVERAL: list[dict[str, Any]] = [
    {"num_beams": 3, "num_return_sequences": 2},
    {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0, "num_return_sequences": 4},
    {"do_sample": True, "temperature": 1.5, "num_return_sequences": 5, "rng_seed": 7},
]
"""Methods of several sequences: as many as places, and more."""


def test_npuw_batches_as_genai_expects(demo: Path) -> None:
    options = {
        "NPUW_LLM_MAX_PROMPT_LEN": 64,
        "NPUW_LLM_MIN_RESPONSE_LEN": 64,
        "NPUW_LLM_BATCH_SLOTS": "1,2",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = Core().compile_model(demo, "NPU", options)
    check_batching(compiled, [5, 9, 13, 7, 21, 30], 1e-4)


@pytest.fixture(scope="module")
def pipe(demo: Path) -> ContinuousBatchingPipeline:
    """Pipeline with three places, fewer than requests."""
    scheduler = SchedulerConfig()
    scheduler.max_num_seqs = 3
    return ContinuousBatchingPipeline(demo, scheduler, "NPU", LENGTHS)


@pytest.fixture(scope="module")
def alone(demo: Path) -> LLMPipeline:
    """Pipeline without slots."""
    return LLMPipeline(demo, "NPU", **LENGTHS)


def test_texts_are_those_of_prompts_alone(
    alone: LLMPipeline, pipe: ContinuousBatchingPipeline
) -> None:
    configs = [GenerationConfig(**values) for values in METHODS]
    results = pipe.generate(QUESTIONS, configs)
    for question, config, result in zip(QUESTIONS, configs, results, strict=True):
        assert result.m_generation_ids == alone.generate([question], config).texts


def test_a_blob_has_its_own_slots(demo: Path, tmp_path: Path) -> None:
    scheduler, blob = SchedulerConfig(), {"BLOB_PATH": str(tmp_path / "two.blob")}
    scheduler.max_num_seqs = 2
    exported = LENGTHS | blob | {"EXPORT_BLOB": "YES"}
    first = ContinuousBatchingPipeline(demo, scheduler, "NPU", exported)
    loaded = ContinuousBatchingPipeline(demo, SchedulerConfig(), "NPU", blob)
    config = [GenerationConfig(max_new_tokens=3)] * 3
    expected, found = (pipe.generate(QUESTIONS[:3], config) for pipe in (first, loaded))
    assert [one.m_generation_ids for one in found] == [one.m_generation_ids for one in expected]


def test_two_chats_continue_in_their_places(demo: Path, pipe: ContinuousBatchingPipeline) -> None:
    alone, config = LLMPipeline(demo, "NPU", **LENGTHS), GenerationConfig(max_new_tokens=4)
    chats, cached = [QUESTIONS[0], QUESTIONS[2]], list[int]()
    for turn in range(3):
        handles = [pipe.add_request(n, text, config) for n, text in enumerate(chats)]
        while pipe.has_non_finished_requests():
            pipe.step()
        cached = [handle.get_cached_tokens() for handle in handles]
        for place, handle in enumerate(handles):
            (output,) = handle.read_all()
            alone._generator.forget_tokens()
            ids = alone.get_tokenizer().encode(chats[place])
            assert output.generated_ids == alone.generate(ids, config).tokens[0]
            assert turn == 0 or 0 < cached[place] < ids.input_ids.shape[1]
            said = alone.get_tokenizer().decode(output.generated_ids)
            chats[place] += f"{said} And {turn}?"


def test_requests_share_steps(pipe: ContinuousBatchingPipeline) -> None:
    config = GenerationConfig(max_new_tokens=12, ignore_eos=True)
    prompts = [[7, 8], [9, 8], [11, 8]]  # no place has the first tokens of any
    handles = [pipe.add_request(n, [ids], config) for n, ids in enumerate(prompts)]
    steps = 0
    while pipe.has_non_finished_requests():
        pipe.step()
        steps += 1
    assert [len(handle.read_all()[0].generated_ids) for handle in handles] == [12, 12, 12]
    assert steps == 12, "a step reads the prompts, and others a token of each request"


@pytest.mark.parametrize("method", SEVERAL, ids=str)
def test_sequences_and_beams_share_steps(alone, pipe, method: dict[str, Any]) -> None:
    """A step computes a token of each sequence, in groups if there are fewer slots."""
    config = GenerationConfig(max_new_tokens=8, ignore_eos=True, **method)
    config.apply_chat_template = False
    handle = pipe.add_request(0, QUESTIONS[0], config)
    observer, together = pipe.get_observer(), list[int]()
    while pipe.has_non_finished_requests():
        pipe.step()
        together.append(observer.state().last_step.generated)
    assert max(together) == 3
    expected = alone.generate([QUESTIONS[0]], config)
    outputs = handle.read_all()
    assert [output.text for output in outputs] == expected.texts
    assert [output.score for output in outputs] == pytest.approx(expected.scores, abs=1e-4)
