"""Beam search, several sequences, batches and seeds, compared to the real openvino_genai, live.

Skipped unless openvino_genai is installed. Both packages run the demo model on the real CPU plugin,
with the same kernels (ATTENTION_BACKEND=SDPA) where that backend has the method.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import genai_layer as ours

theirs = pytest.importorskip("openvino_genai")

pytestmark = pytest.mark.oracle

QUESTION, OTHER = "What is an NPU?", "Who reads a blob?"
EXACTLY = {"INFERENCE_PRECISION_HINT": "f32"}

SAMPLED: dict[str, Any] = {"max_new_tokens": 5, "do_sample": True}

BEAMS = [(4, 1, 3), (4, 2, 4), (15, 3, 15)]
"""Numbers of beams, of groups, and of returned texts."""
SEARCHES: list[dict[str, Any]] = [
    {},
    {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2},
    {"length_penalty": 2.0},
    {"length_penalty": -1.0},
    {"stop_criteria": "EARLY"},
    {"stop_criteria": "NEVER"},
]
FILTERS: list[dict[str, Any]] = [
    {},
    {"top_k": 5},
    {"top_k": 40},
    {"top_k": 30, "logprobs": 1},
    {"top_k": 20, "top_p": 0.9},
    {"top_k": 300, "min_p": 0.001},
    {"top_k": 7, "repetition_penalty": 1.3},
    {"top_p": 0.8},
    {"min_p": 0.02},
]


@pytest.fixture(scope="module")
def pipes(genai_folder: Path) -> dict[str, tuple[Any, Any]]:
    """Both pipelines, the real one with each of its attention backends."""
    own = ours.LLMPipeline(genai_folder, "CPU", **EXACTLY)
    return {
        backend: (
            own,
            theirs.LLMPipeline(genai_folder, "CPU", ATTENTION_BACKEND=backend, **EXACTLY),
        )
        for backend in ("SDPA", "PA")
    }


def check_equal(pipes: tuple[Any, Any], inputs: Any, parameters: dict[str, Any]) -> None:
    """Check that texts, reasons and scores of both packages are equal."""
    found: list[Any] = []
    for package, pipe in zip((ours, theirs), pipes, strict=True):
        values = dict(parameters)
        if "stop_criteria" in values:
            values["stop_criteria"] = getattr(package.StopCriteria, values["stop_criteria"])
        found.append(pipe.generate(inputs, **values))
    own, real = found
    assert own.texts == real.texts
    assert [one.name for one in own.finish_reasons] == [one.name for one in real.finish_reasons]
    assert own.scores == pytest.approx(real.scores, abs=2e-3, rel=2e-3)


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize(("beams", "groups", "texts"), BEAMS)
def test_beam_search_is_equal(pipes, beams, groups, texts, search) -> None:
    parameters = search | {
        "max_new_tokens": 24,
        "num_beams": beams,
        "num_beam_groups": groups,
        "num_return_sequences": texts,
        "diversity_penalty": 1.0 if groups > 1 else 0.0,
    }
    check_equal(pipes["PA"], [OTHER], parameters)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_a_seed_draws_the_same_tokens(pipes, filters, seed) -> None:
    parameters = filters | {
        "max_new_tokens": 12,
        "do_sample": True,
        "rng_seed": seed,
        "temperature": 3.0 if seed % 2 else 1.7,
    }
    check_equal(pipes["SDPA"], [QUESTION], parameters)


@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e-38, 3e-39])
def test_a_low_temperature_is_equal(pipes, temperature: float) -> None:
    check_equal(pipes["SDPA"], [QUESTION], SAMPLED | {"temperature": temperature})


@pytest.mark.parametrize("penalty", [1e-45, 1e-38, 3e-38, 1e38, 3.4e38])
def test_an_extreme_repetition_penalty_chooses_equal_tokens(pipes, penalty: float) -> None:
    check_equal(pipes["SDPA"], [QUESTION], {"max_new_tokens": 5, "repetition_penalty": penalty})


@pytest.mark.parametrize("penalty", [-1e38, -100.0, 100.0, 1e38])
def test_scores_that_exceed_f32_keep_the_likeliest_text_here_alone(pipes, penalty: float) -> None:
    """The real scores are -inf or -0.0 for all texts, so that any of them is returned."""
    own, real = pipes["SDPA"]
    search = {"max_new_tokens": 5, "num_beams": 2}
    ordinary = own.generate([QUESTION], **search, length_penalty=0.0)
    extreme = own.generate([QUESTION], **search, length_penalty=penalty)
    assert extreme.texts == ordinary.texts
    assert np.isfinite(extreme.scores).all()
    assert real.generate([QUESTION], **search, length_penalty=penalty).scores[0] in (-np.inf, 0)


@pytest.mark.parametrize("temperature", [2.9e-39, 1e-45])
def test_below_that_the_texts_are_greedy_here_alone(pipes, temperature: float) -> None:
    """The real one draws from NaN: 1 / temperature is infinite in f32."""
    own, real = pipes["SDPA"]
    greedy = own.generate([QUESTION], max_new_tokens=5).texts
    assert own.generate([QUESTION], **SAMPLED, temperature=temperature).texts == greedy
    assert real.generate([QUESTION], **SAMPLED, temperature=temperature).texts != greedy


@pytest.mark.parametrize(
    ("inputs", "parameters"),
    [
        ([QUESTION], {"max_new_tokens": 5, "echo": True}),
        ([QUESTION], {"max_new_tokens": 0, "echo": True}),
        ([QUESTION, OTHER], {"max_new_tokens": 9}),
        ([QUESTION, OTHER], {"max_new_tokens": 9, "num_beams": 3, "num_return_sequences": 2}),
        ([QUESTION, OTHER], {"max_new_tokens": 5, "do_sample": True, "num_return_sequences": 3}),
    ],
    ids=str,
)
def test_texts_of_prompts_are_equal(pipes, inputs, parameters) -> None:
    check_equal(pipes["PA"], inputs, parameters)
