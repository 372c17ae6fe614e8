"""Lists, sequences and beams of LLMPipeline in the batch slots of the simulated NPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from genai_layer import GenerationConfig, LLMPipeline, SchedulerConfig, StopCriteria

LENGTHS = {"MAX_PROMPT_LEN": 64, "MIN_RESPONSE_LEN": 64, "INFERENCE_PRECISION_HINT": "f32"}
QUESTIONS = ["What is an NPU?", "Who reads a blob?", "Why?", "What is a blob?", "Hello."]
SAMPLED = {"do_sample": True, "temperature": 1.5, "rng_seed": 7}
METHODS: list[dict[str, Any]] = [
    {"max_new_tokens": 20},
    {"max_new_tokens": 12, "stop_strings": {"program"}, "logprobs": 1},
    {"max_new_tokens": 12, "num_return_sequences": 4, **SAMPLED},
    {"max_new_tokens": 12, "num_beams": 4, "num_return_sequences": 4},
    {"max_new_tokens": 9, "num_beams": 3, "stop_criteria": StopCriteria.NEVER},
    {
        "max_new_tokens": 9,
        "num_beams": 4,
        "num_beam_groups": 2,
        "diversity_penalty": 1.0,
        "num_return_sequences": 4,
    },
]


@pytest.fixture(scope="module")
def alone(demo: Path) -> LLMPipeline:
    """Pipeline without slots."""
    return LLMPipeline(demo, "NPU", **LENGTHS)


@pytest.fixture(scope="module")
def slots(demo: Path) -> LLMPipeline:
    """Pipeline with three slots, fewer than texts."""
    return LLMPipeline(demo, "NPU", scheduler_config=SchedulerConfig(max_num_seqs=3), **LENGTHS)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_texts_and_scores_are_those_without_slots(
    alone: LLMPipeline, slots: LLMPipeline, method: dict[str, Any]
) -> None:
    found, expected = (
        pipe.generate(QUESTIONS, GenerationConfig(**method)) for pipe in (slots, alone)
    )
    assert found.texts == expected.texts
    assert found.finish_reasons == expected.finish_reasons
    assert found.scores == pytest.approx(expected.scores, abs=1e-4)


def test_the_report_is_that_of_the_last_generation(slots: LLMPipeline) -> None:
    slots.generate(QUESTIONS[:3], max_new_tokens=3, ignore_eos=True)
    assert slots.execution_report()["slots"] == "3 of 3"
    slots.generate(QUESTIONS[0], max_new_tokens=3)
    assert "prefill" in slots.execution_report()
