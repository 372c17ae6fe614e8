"""Draft models and prompt lookup on the simulated NPU: texts and scores stay as they are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from genai_layer import LLMPipeline, draft_model
from genai_layer.testing.check_runtime import check_runtime, check_steps_of_several_tokens
from npuw_layer import Core

F32 = {"INFERENCE_PRECISION_HINT": "f32"}
LENGTHS = {"MAX_PROMPT_LEN": 64, "MIN_RESPONSE_LEN": 64}
TOKENS = [5, 9, 13, 7, 21, 30]
QUESTIONS = ["What is an NPU?", "Explain prefill. What is prefill? Prefill is"]
PARAMETERS: list[dict[str, Any]] = [
    {"logprobs": 1},
    {"logprobs": 1, "stop_strings": {" the "}, "repetition_penalty": 1.2},
    {"do_sample": True, "temperature": 1.5, "rng_seed": 3},
    {"ignore_eos": True, "max_new_tokens": 200},
]


@pytest.fixture(scope="module")
def first_layers(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the demo model's first three layers, with its head."""
    target = tmp_path_factory.mktemp("draft")
    shutil.copytree(demo, target, dirs_exist_ok=True)
    config = json.loads((demo / "config.json").read_text())
    (target / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    return target


@pytest.fixture(scope="module")
def pipes(demo: Path, first_layers: Path) -> list[LLMPipeline]:
    """Pipelines without candidates, with drafts, and with prompt lookup."""
    own: list[dict[str, Any]] = [
        {},
        {"draft_model": draft_model(first_layers)},
        {"draft_model": draft_model(demo, "NPU", **F32, MAX_PROMPT_LEN=128)},
        {"prompt_lookup": True},
    ]
    return [LLMPipeline(demo, "NPU", **LENGTHS, **F32, **each) for each in own]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_candidates_change_nothing(
    pipes: list[LLMPipeline], question: str, parameters: dict[str, Any]
) -> None:
    values = {"max_new_tokens": 40, "num_assistant_tokens": 3} | parameters
    plain, *others = pipes
    expected = plain.generate([question], **values)
    for pipe in others:
        lookup = {"max_ngram_size": 2} if pipe is others[-1] else {}
        found = pipe.generate([question], **values, **lookup)
        assert found.texts == expected.texts
        assert found.finish_reasons == expected.finish_reasons
        assert found.scores == pytest.approx(expected.scores, rel=1e-3)


def test_candidates_are_accepted_and_rejected(pipes: list[LLMPipeline]) -> None:
    for pipe, complete in ((pipes[1], False), (pipes[2], True)):
        found = pipe.generate([QUESTIONS[0]], max_new_tokens=40, num_assistant_tokens=3)
        both = found.extended_perf_metrics
        assert both is not None
        assert both.get_num_accepted_tokens() > 0
        assert (both.get_draft_acceptance_rate() == 1) is complete


@pytest.mark.parametrize("tokens", [4, 16])
def test_steps_of_several_tokens_pass_genais_checks(demo: Path, tokens: int) -> None:
    options = {
        "NPUW_LLM_MAX_PROMPT_LEN": 64,
        "NPUW_LLM_MIN_RESPONSE_LEN": 64,
        "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": tokens,
    }
    compiled = Core().compile_model(demo, "NPU", options | F32)
    check_runtime(lambda: compiled, TOKENS, 1e-4)
    check_steps_of_several_tokens(compiled, TOKENS, 1e-4)
