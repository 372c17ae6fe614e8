"""Speculative decoding and prompt lookup beside the real openvino_genai, live.

Skipped unless openvino_genai and openvino_tokenizers are installed. All candidates of both packages
must leave the greedy text of the real one. The draft is the demo model without its last layers.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import genai_layer as ours

theirs = pytest.importorskip("openvino_genai")

pytestmark = pytest.mark.oracle

QUESTIONS = ["What is an NPU?", "Who reads a blob?", "Explain prefill. What is prefill? Prefill is"]
EXACTLY = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
KEPT = 2
"""Layers of the draft."""


@pytest.fixture(scope="module")
def draft_folder(genai_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy of the demo model whose last layers add nothing."""
    import openvino as ov
    from openvino import opset13 as ops

    target = tmp_path_factory.mktemp("draft")
    shutil.copytree(genai_folder, target, dirs_exist_ok=True)
    model = ov.Core().read_model(genai_folder / "openvino_model.xml")
    for node in model.get_ops():
        name = node.get_friendly_name()
        last = any(f"layers.{layer}." in name for layer in range(KEPT, 99))
        adds = node.get_type_name() == "MatMul" and ("o_proj" in name or "down_proj" in name)
        if last and adds:
            inputs = list(node.output(0).get_target_inputs())
            nothing = ops.multiply(node, ops.constant(0, node.get_output_element_type(0)))
            for port in inputs:
                port.replace_source_output(nothing.output(0))
    ov.save_model(model, target / "openvino_model.xml", compress_to_fp16=False)
    return target


@pytest.fixture(scope="module")
def greedy(genai_folder: Path) -> Any:
    """The real pipeline, without candidates."""
    return theirs.LLMPipeline(genai_folder, "CPU", **EXACTLY)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "parameters",
    [{}, {"num_assistant_tokens": 3}, {"assistant_confidence_threshold": 0.4}],
    ids=str,
)
def test_a_draft_model_changes_nothing(
    greedy, genai_folder: Path, draft_folder: Path, question: str, parameters: dict[str, Any]
) -> None:
    expected = greedy.generate([question], max_new_tokens=40).texts
    for package in (ours, theirs):
        draft = package.draft_model(draft_folder, "CPU", **EXACTLY)
        pipe = package.LLMPipeline(genai_folder, "CPU", draft_model=draft, **EXACTLY)
        found = pipe.generate([question], max_new_tokens=40, **parameters)
        assert found.texts == expected
        both = found.extended_perf_metrics
        assert 0 < both.get_num_accepted_tokens() < both.get_num_draft_tokens()
        assert both.get_num_generated_tokens() == sum(found.perf_metrics.raw_metrics.m_batch_sizes)
        assert both.main_model_metrics.get_num_generated_tokens() > 0


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("longest", [1, 3])
def test_prompt_lookup_accepts_the_same_tokens(
    greedy, genai_folder: Path, question: str, longest: int
) -> None:
    expected = greedy.generate([question], max_new_tokens=40).texts
    sizes: list[list[int]] = []
    for package in (ours, theirs):
        pipe = package.LLMPipeline(genai_folder, "CPU", prompt_lookup=True, **EXACTLY)
        parameters = {"num_assistant_tokens": 4, "max_ngram_size": longest}
        found = pipe.generate([question], max_new_tokens=40, **parameters)
        assert found.texts == expected
        assert found.extended_perf_metrics is None
        sizes.append(list(found.perf_metrics.raw_metrics.m_batch_sizes))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("source", ["draft_model", "prompt_lookup"])
def test_continuous_batching_drafts_the_same_texts(
    greedy, genai_folder: Path, draft_folder: Path, source: str
) -> None:
    expected = [greedy.generate(each, max_new_tokens=40) for each in QUESTIONS]
    for package in (ours, theirs):
        value = package.draft_model(draft_folder, "CPU", **EXACTLY)
        drafts = {source: value if source == "draft_model" else True}
        pipe = package.ContinuousBatchingPipeline(
            genai_folder, package.SchedulerConfig(), "CPU", {**EXACTLY, **drafts}
        )
        config = pipe.get_config()
        config.max_new_tokens, config.num_assistant_tokens = 40, 3
        if source == "prompt_lookup":
            config.max_ngram_size = 2
        found = pipe.generate(QUESTIONS, [config] * len(QUESTIONS))
        assert [each.m_generation_ids[0] for each in found] == expected
        both = [each.extended_perf_metrics for each in found]
        assert all((each is None) == (source == "prompt_lookup") for each in both)


def test_values_of_both_packages_are_accepted(genai_folder: Path) -> None:
    for package in (ours, theirs):
        pipe = package.LLMPipeline(genai_folder, "CPU", **EXACTLY)
        plain = pipe.generate("What is an NPU?", max_new_tokens=9)
        unread = {"num_assistant_tokens": 4, "max_ngram_size": 3}
        assert pipe.generate("What is an NPU?", max_new_tokens=9, **unread) == plain
        draft = package.draft_model(genai_folder)
        both = {"draft_model": draft, "prompt_lookup": True}
        with pytest.raises(RuntimeError, match="exclu"):
            package.LLMPipeline(genai_folder, "CPU", **both, **EXACTLY)
        with pytest.raises(RuntimeError):
            package.LLMPipeline(genai_folder, "CPU", draft_model="a", **EXACTLY)
