"""Continuous batching with images and videos: each text is that of VLMPipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import golden_folders

from genai_layer import (
    ChatHistory,
    ConfigError,
    ContinuousBatchingPipeline,
    GenerationConfig,
    ModelError,
    PromptError,
    PropertyError,
    SchedulerConfig,
    VLMPipeline,
)
from genai_layer.results import GenerationFinishReason

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
EXACT: dict[str, dict[str, Any]] = {
    "CPU": {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"},
    "NPU": {"INFERENCE_PRECISION_HINT": "f32", "MAX_PROMPT_LEN": 128},
}

folder, tools = golden_folders.vision_folder, golden_folders.vision_tools


@pytest.fixture(scope="module", params=["CPU", "NPU"])
def pipes(folder: Path, request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """Pipelines of several requests, and of one text at a time."""
    exact = EXACT[request.param]
    batched = ContinuousBatchingPipeline(folder, SchedulerConfig(), request.param, exact)
    return batched, VLMPipeline(folder, request.param, **exact)


@pytest.fixture(scope="module")
def cpu(folder: Path) -> ContinuousBatchingPipeline:
    return ContinuousBatchingPipeline(folder, SchedulerConfig(), "CPU", EXACT["CPU"])


def nine(**values: Any) -> GenerationConfig:
    return GenerationConfig(max_new_tokens=9, **values)


def test_texts_are_those_of_vlm_pipeline(pipes: tuple[Any, Any], tools: Any) -> None:
    batched, alone = pipes
    one, two = tools.picture(60, 90), tools.picture(90, 60, 1)
    prompts = ["What?", "b <ov_genai_image_1> a <ov_genai_image_0>", "And?", "c"]
    images = [[one], [one, two], [], []]
    videos = [[], [], [], [tools.film(3, 60, 90)]]
    configs = [nine(), nine(apply_chat_template=False), nine(), nine(num_beams=2)]
    found = batched.generate(prompts, images, videos, configs)
    for prompt, pictures, films, config, result in zip(
        prompts, images, videos, configs, found, strict=True
    ):
        expected = alone.generate(prompt, pictures, films, config)
        assert result.texts == expected.texts
        assert np.allclose(result.scores, expected.scores, atol=1e-3)
        assert result.finish_reasons == [GenerationFinishReason.LENGTH]
        tokens = [each.perf_metrics.get_num_input_tokens() for each in (result, expected)]
        assert tokens[0] == tokens[1]
    assert found[1].perf_metrics.get_total_image_slice_count() == 2


def test_requests_with_images_run_in_steps(cpu: Any, folder: Path, tools: Any) -> None:
    image, video = tools.picture(60, 90), tools.film(3, 60, 90)
    raw = nine(apply_chat_template=False)
    handles = [
        cpu.add_request(0, "What?", [image], raw),
        cpu.add_request(1, "What?", [image], [video], raw),
        cpu.add_request(2, "What?", raw),
    ]
    while cpu.has_non_finished_requests():
        cpu.step()
    decode = cpu.get_tokenizer().decode
    found = [decode(handle.read_all()[0].generated_ids) for handle in handles]
    alone = VLMPipeline(folder, "CPU", **EXACT["CPU"])
    given: list[Any] = [([image], []), ([image], [video]), ([], [])]
    assert found == [alone.generate("What?", *each, raw).texts[0] for each in given]


def test_a_chat_remembers_images(cpu: Any, folder: Path, tools: Any) -> None:
    image = tools.picture(60, 90)
    texts: list[list[str]] = []
    for pipe in (cpu, VLMPipeline(folder, "CPU", **EXACT["CPU"])):
        history, said = ChatHistory(), list[str]()
        for question, images in (("What?", [image]), ("And?", [])):
            history.append({"role": "user", "content": question})
            if pipe is cpu:
                result = cpu.generate([history], images=[images], generation_config=[nine()])[0]
            else:
                result = pipe.generate(history, images=images, generation_config=nine())
            said.append(result.texts[0])
            history.append({"role": "assistant", "content": said[-1]})
        texts.append(said)
    assert texts[0] == texts[1]


def test_results_depend_on_the_lists(cpu: Any) -> None:
    plain = cpu.generate(["What?"], [nine()])[0]
    assert cpu.generate(["What?"], [[]], [nine()])[0].texts == plain.m_generation_ids
    assert cpu.generate("What?", nine())[0].m_generation_ids == plain.m_generation_ids


def test_wrong_calls_are_rejected(cpu: Any, folder: Path, tools: Any, demo: Path) -> None:
    image = tools.picture(60, 90)
    with pytest.raises(PromptError, match="2 lists for 1 prompts"):
        cpu.generate(["a"], [[image], [image]], [nine()])
    with pytest.raises(PromptError, match="token ids: a model of images"):
        cpu.generate([[1, 2]], [nine()])
    with pytest.raises(TypeError, match="unexpected argument 'image'"):
        cpu.generate(["a"], image=[[image]], generation_config=[nine()])
    with pytest.raises(TypeError, match="multiple values for argument 'images'"):
        cpu.generate(["a"], [[image]], [nine()], images=[[image]])
    with pytest.deprecated_call():
        cpu.start_chat()
    with pytest.raises(ConfigError, match="pass one to generate"):
        cpu.generate(["a"], [[image]], [nine()])
    with pytest.deprecated_call():
        cpu.finish_chat()
    with pytest.raises(ModelError, match="model_type"):
        ContinuousBatchingPipeline(_with_other_family(folder), SchedulerConfig(), "CPU")
    with pytest.raises(PropertyError, match="prompt_lookup: not supported with images"):
        ContinuousBatchingPipeline(folder, SchedulerConfig(), "CPU", {"prompt_lookup": True})
    texts = ContinuousBatchingPipeline(demo, SchedulerConfig(), "NPU", {"MAX_PROMPT_LEN": 64})
    for given in ([[image]], [[]]):
        with pytest.raises(PromptError, match="the model reads texts only"):
            texts.generate(["a"], given, [nine()])


def _with_other_family(folder: Path) -> Path:
    other = folder.parent / "other"
    other.mkdir()
    for file in folder.iterdir():
        (other / file.name).symlink_to(file)
    (other / "config.json").unlink()
    (other / "config.json").write_text('{"model_type": "llava"}')
    return other
