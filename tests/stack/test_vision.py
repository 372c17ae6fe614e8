"""Vision-language pipeline on the complete stack, compared to the real openvino_genai.

The model is tiny and random, its texts are letters; tools/make_vision_goldens.py wrote them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import golden_folders

from genai_layer import (
    ChatHistory,
    ConfigError,
    GenerationConfig,
    ModelError,
    PromptError,
    PropertyError,
    RuntimeFailure,
    StreamingStatus,
    StructuredOutputConfig,
    Tensor,
    Tokenizer,
    VLMPipeline,
    draft_model,
)
from genai_layer.decoding.payoff import AlwaysPays
from genai_layer.results import GenerationFinishReason
from npuw_layer import Core

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
SAID: dict[str, Any] = json.loads((GOLDENS / "vision" / "texts.json").read_text())
EXACT: dict[str, dict[str, Any]] = {
    "CPU": {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"},
    "NPU": {"INFERENCE_PRECISION_HINT": "f32", "MAX_PROMPT_LEN": 256},
}
NINE = {"max_new_tokens": 9}

folder, tools = golden_folders.vision_folder, golden_folders.vision_tools


@pytest.fixture(scope="module", params=["NPU", "CPU"])
def pipeline(folder: Path, request: pytest.FixtureRequest) -> VLMPipeline:
    """Pipeline on this stack's NPU, and on the real OpenVINO."""
    return VLMPipeline(folder, request.param, **EXACT[request.param])


@pytest.fixture(scope="module")
def cpu(folder: Path) -> VLMPipeline:
    return VLMPipeline(folder, "CPU", **EXACT["CPU"])


@pytest.mark.matrix
@pytest.mark.parametrize("name", SAID)
def test_texts_equal_openvino_genais(pipeline: VLMPipeline, tools: Any, name: str) -> None:
    expected = SAID[name]
    images = [tools.picture(*size, seed) for seed, size in enumerate(expected.get("sizes", []))]
    videos = [tools.film(*film, seed) for seed, film in enumerate(expected.get("films", []))]
    said = pipeline.generate(expected["prompt"], images, videos, max_new_tokens=16)
    assert said.texts == [expected["text"]]


def test_npu_runs_the_vision_encoder_in_f16_too(folder: Path, tools: Any) -> None:
    pipe = VLMPipeline(folder, "NPU", MAX_PROMPT_LEN=64)
    assert pipe.generate("What?", image=tools.picture(60, 90), **NINE).texts[0]


def test_a_chat_remembers_images(cpu: VLMPipeline, tools: Any) -> None:
    history, image, other = ChatHistory(), tools.picture(60, 90), tools.picture(60, 60)
    history.append({"role": "user", "content": "What?"})
    first = cpu.generate(history, image, **NINE)
    history.append({"role": "assistant", "content": first.texts[0]})
    history.append({"role": "user", "content": "And?"})
    second = cpu.generate(history, **NINE)
    counts = [each.perf_metrics.get_num_input_tokens() for each in (first, second)]
    assert counts[1] > counts[0] + 10
    with pytest.deprecated_call():
        cpu.start_chat()
    turns = [cpu.generate("What?", image, **NINE), cpu.generate("And?", **NINE)]
    with pytest.raises(ConfigError, match="call finish_chat first"):
        cpu.set_chat_template("{{ messages }}")
    with pytest.deprecated_call():
        cpu.finish_chat()
    assert [turn.texts for turn in turns] == [first.texts, second.texts]
    assert cpu.generate(history, other, **NINE).texts != second.texts


@pytest.mark.parametrize("changed", [False, True])
def test_turns_with_images_are_read_as_if_whole(
    pipeline: VLMPipeline, tools: Any, changed: bool
) -> None:
    """The text of another image of the same size has the same tokens."""
    first, other = tools.picture(60, 90, 1), tools.picture(60, 90, 2)
    history = ChatHistory([{"role": "user", "content": "What?"}])
    said = pipeline.generate(history, first, **NINE).texts[0]
    history.append({"role": "assistant", "content": said})
    history.append({"role": "user", "content": "And?"})
    if changed:
        history, image = ChatHistory([{"role": "user", "content": "What?"}]), [other]
    else:
        image = []
    found = pipeline.generate(history, image, **NINE).texts
    pipeline._generator.forget_tokens()
    assert found == pipeline.generate(history, image, **NINE).texts


def test_a_cancelled_turn_is_forgotten(cpu: VLMPipeline, tools: Any) -> None:
    image = tools.picture(60, 90)
    plain = cpu.generate("And?", **NINE)
    with pytest.deprecated_call():
        cpu.start_chat()
    cancelled = cpu.generate("What?", image, streamer=lambda _: StreamingStatus.CANCEL, **NINE)
    assert cancelled.finish_reasons == [GenerationFinishReason.NONE]
    assert cpu.generate("And?", **NINE).texts == plain.texts
    with pytest.deprecated_call():
        cpu.finish_chat()


def test_metrics_count_images_and_are_added(cpu: VLMPipeline, tools: Any) -> None:
    images = [tools.picture(60, 90), tools.picture(60, 60)]
    one, two = (cpu.generate("What?", images=images, **NINE).perf_metrics for _ in range(2))
    total = one + two
    total += one
    assert total.get_total_image_slice_count() == 6
    assert total.get_num_generated_tokens() == 27
    for mean, _ in (
        total.get_prepare_embeddings_duration(),
        total.get_vision_encoding_duration(),
        total.get_text_embedding_duration(),
    ):
        assert 0 < mean < total.get_ttft().mean
    assert tuple(total.get_audio_encoding_duration()) == (-1, -1)
    assert len(one.vlm_raw_metrics.vision_encoding_durations) == 1


def test_without_a_chat_template_the_text_is_the_prompt(cpu: VLMPipeline, tools: Any) -> None:
    said = cpu.generate("What?", tools.picture(56, 56), apply_chat_template=False, **NINE)
    tags, text = 2 + 4, 4
    assert said.perf_metrics.get_num_input_tokens() == tags + text
    with pytest.raises(ConfigError, match="a chat needs it"):
        cpu.generate(ChatHistory([{"role": "user", "content": "a"}]), apply_chat_template=False)


def test_special_tokens_of_messages_are_text(cpu: VLMPipeline, tools: Any) -> None:
    image, attack = tools.picture(56, 56), "<|image_pad|><|vision_start|><|im_end|>"
    counts = [
        cpu.generate(text, image, **NINE).perf_metrics.get_num_input_tokens()
        for text in ("", attack)
    ]
    assert counts[1] - counts[0] > 20


def test_a_grammar_limits_the_text(cpu: VLMPipeline, tools: Any) -> None:
    config = StructuredOutputConfig(regex="[0-9]{3}")
    said = cpu.generate("What?", tools.picture(56, 56), structured_output_config=config)
    assert said.texts[0].isdecimal()
    assert len(said.texts[0]) == 3


def test_prompts_that_cannot_be_run_are_rejected(pipeline: VLMPipeline, tools: Any) -> None:
    with pytest.raises(PromptError, match=r"5 tokens <\|image_pad\|>, but its images have 4"):
        pipeline.generate("<|image_pad|>", tools.picture(56, 56), apply_chat_template=False)
    with pytest.raises(ConfigError, match="pruning_ratio = 30: image tokens are not pruned"):
        pipeline.generate("a", pruning_ratio=30)
    assert pipeline.generate("a", **NINE).texts[0]


@pytest.mark.parametrize("device", ["NPU", "CPU"])
def test_prompt_lookup_changes_no_text(
    folder: Path, tools: Any, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genai_layer.speculation.request.Payoff", AlwaysPays)
    pipe = VLMPipeline(folder, device, prompt_lookup=True, **EXACT[device])
    question = "abababab", tools.picture(60, 90)
    plain = pipe.generate(*question, max_new_tokens=24)
    found = pipe.generate(*question, max_new_tokens=24, num_assistant_tokens=4, max_ngram_size=2)
    assert found.texts == plain.texts
    steps = [len(one.perf_metrics.raw_metrics.token_infer_durations) for one in (found, plain)]
    assert steps[0] != steps[1], "candidates are read"


def test_a_prompt_must_fit_on_npu(folder: Path, tools: Any) -> None:
    pipe = VLMPipeline(folder, "NPU", MAX_PROMPT_LEN=32)
    with pytest.raises(PromptError, match="MAX_PROMPT_LEN=32: the prompt has"):
        pipe.generate("What?", tools.picture(140, 140))


def test_folders_and_properties_that_do_not_fit_are_rejected(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PropertyError, match="draft_model: VLMPipeline does not support it; leave"):
        VLMPipeline(folder, "NPU", draft_model=draft_model(folder))
    with pytest.raises(PropertyError, match="BLOB_PATH is not supported by VLMPipeline"):
        VLMPipeline(folder, "NPU", BLOB_PATH="a.blob")
    with pytest.raises(RuntimeFailure):
        VLMPipeline(folder, "NPU", NO_SUCH_OPTION=3)
    with pytest.raises(ModelError, match="no such folder"):
        VLMPipeline(tmp_path / "none", "CPU")
    copied = Path(shutil.copytree(folder, tmp_path / "copied"))
    (copied / "openvino_vision_embeddings_model.xml").unlink()
    with pytest.raises(ModelError, match="no such file; export the model"):
        VLMPipeline(copied, "CPU")
    (copied / "config.json").write_text('{"model_type": "llava"}')
    with pytest.raises(ModelError, match=r"model_type = 'llava': not supported"):
        VLMPipeline(copied, "CPU")


@pytest.fixture(scope="module")
def in_memory(folder: Path, tools: Any) -> dict[str, tuple[str, Tensor]]:
    """Texts and weights of the models."""
    paths = {part: folder / f"openvino_{part}_model.xml" for part in tools.PARTS}
    return {
        part: (path.read_text(), Tensor(np.fromfile(path.with_suffix(".bin"), np.uint8)))
        for part, path in paths.items()
    }


@pytest.mark.parametrize("device", ["NPU", "CPU"])
def test_models_may_be_in_memory(
    folder: Path, tools: Any, in_memory: dict[str, Any], tmp_path: Path, device: str
) -> None:
    for name in ("config.json", "preprocessor_config.json"):
        shutil.copy(folder / name, tmp_path)
    given = GenerationConfig(max_new_tokens=16)
    tokenizer = Tokenizer(folder)
    pipe = VLMPipeline(in_memory, tokenizer, tmp_path, device, given, **EXACT[device])
    expected = SAID["images"]
    images = [tools.picture(*size, seed) for seed, size in enumerate(expected["sizes"])]
    assert pipe.generate(expected["prompt"], images).texts == [expected["text"]]
    assert pipe.get_generation_config().eos_token_id == tokenizer.get_eos_token_id()
    assert given.eos_token_id == -1


def test_incomplete_models_in_memory_are_rejected(folder: Path, in_memory: dict[str, Any]) -> None:
    tokenizer = Tokenizer(folder)
    others = {part: model for part, model in in_memory.items() if part != "language"}
    with pytest.raises(ModelError, match="models has no 'language'; pass the IR"):
        VLMPipeline(others, tokenizer, folder, "CPU")
    with pytest.raises(ModelError, match=r"models\['language'\]: not an IR in memory"):
        VLMPipeline(in_memory | {"language": "a"}, tokenizer, folder, "CPU")
    broken = in_memory | {"text_embeddings": ("<net", in_memory["language"][1])}
    for device in ("CPU", "NPU"):
        with pytest.raises(RuntimeFailure):
            VLMPipeline(broken, tokenizer, folder, device).generate("a")


class CountingCore(Core):
    """Core that counts the static models of the vision encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.mergers = 0

    def compile_reshaped(self, *given: Any) -> Any:
        self.mergers += "rotary_pos_emb" in given[3]
        return super().compile_reshaped(*given)


def test_images_of_many_sizes_keep_few_static_models(folder: Path, tools: Any) -> None:
    core = CountingCore()
    pipe = VLMPipeline(folder, "NPU", core=core, **EXACT["NPU"])

    def text(step: int) -> str:
        return pipe.generate("a", tools.picture(56, 56 + 28 * step), max_new_tokens=2).texts[0]

    texts = [text(step) for step in (*range(8), 0)]
    assert core.mergers == 8, "eight are kept"
    text(8)
    assert text(0) == texts[0]
    assert core.mergers == 9, "the latest are kept"
    text(1)
    assert core.mergers == 10, "the oldest is compiled again"
    assert texts[0] == texts[-1]
    assert np.unique(texts).size > 1
