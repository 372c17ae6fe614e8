"""genai on the real OpenVINO instead of npuw: another runtime, equal texts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from genai_layer import LLMPipeline
from genai_layer.testing.check_runtime import check_runtime
from npuw_layer import Core

F32 = {"INFERENCE_PRECISION_HINT": "f32"}
QUESTIONS = ("What is an NPU?", "What is a KV cache?", "Who are you?")


@pytest.fixture(scope="module")
def folder(demo: Path, demo_ir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Demo model as the exporter writes it: IR and tokenizer, without Hugging Face's weights."""
    target = tmp_path_factory.mktemp("demo_exported")
    for file in demo_ir.parent.iterdir():
        shutil.copy(file, target)
    for file in demo.glob("*.json"):
        shutil.copy(file, target)
    return target


def test_the_real_openvino_and_our_npu_generate_the_same_texts(folder: Path) -> None:
    ours = LLMPipeline(folder, "NPU", MAX_PROMPT_LEN=64, **F32)
    real = LLMPipeline(folder, "CPU", KV_CACHE_PRECISION="f32", **F32)
    for question in QUESTIONS:
        answers = [pipe.generate([question], max_new_tokens=80) for pipe in (ours, real)]
        assert answers[0].texts == answers[1].texts
        assert answers[0].finish_reasons == answers[1].finish_reasons


@pytest.mark.long
def test_the_exported_model_generates_the_folders_texts(folder: Path, demo: Path) -> None:
    pipes = [LLMPipeline(path, "NPU", MAX_PROMPT_LEN=64, **F32) for path in (folder, demo)]
    for question in QUESTIONS:
        one, other = (pipe.generate(question, max_new_tokens=80) for pipe in pipes)
        assert one == other


def test_npuw_passes_genais_runtime_checks(demo: Path) -> None:
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64, **F32}
    compiled = Core().compile_model(demo, "NPU", options)
    check_runtime(lambda: compiled, [5, 9, 13, 7, 21, 30], 1e-4)


def test_npuw_on_the_graph_interpreter_generates_the_same_text(demo: Path) -> None:
    npu, graph = (
        LLMPipeline(demo, "NPU", MAX_PROMPT_LEN=64, NPUW_DEVICES=device, **F32)
        for device in ("NPU", "CPU")
    )
    question = QUESTIONS[0]
    assert npu.generate(question, max_new_tokens=20) == graph.generate(question, max_new_tokens=20)
