"""Decoding of several texts on the simulated NPU, compared to the real OpenVINO on CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from genai_layer import LLMPipeline

QUESTION = "Who reads a blob?"
SEARCHES = [
    {"num_beams": 4, "num_return_sequences": 3},
    {"num_beams": 6, "num_beam_groups": 3, "diversity_penalty": 1.0, "num_return_sequences": 6},
    {"num_beams": 3, "no_repeat_ngram_size": 2, "num_return_sequences": 3},
]


@pytest.fixture(scope="module")
def pipes(demo: Path, demo_ir: Path) -> list[LLMPipeline]:
    npu = LLMPipeline(demo, "NPU", MAX_PROMPT_LEN=128)
    folder, tokenizer = demo_ir.parent, npu.get_tokenizer()
    return [npu, LLMPipeline(folder, tokenizer, "CPU", INFERENCE_PRECISION_HINT="f32")]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_texts_of_the_npu_are_those_of_the_cpu(pipes, search) -> None:
    npu, cpu = (
        pipe.generate([QUESTION, "What is an NPU?"], eos_token_id=2, max_new_tokens=20, **search)
        for pipe in pipes
    )
    assert npu.texts == cpu.texts
    assert npu.scores == pytest.approx(cpu.scores, abs=0.02)
