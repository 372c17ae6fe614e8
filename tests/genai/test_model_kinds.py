"""Folders at the door of a pipeline that does not read them.

The commands are those that optimum-cli 2.2 of optimum-intel takes, tried on small random models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from genai_layer import (
    ContinuousBatchingPipeline,
    EmbeddingPipeline,
    LLMPipeline,
    ModelError,
    SchedulerConfig,
    TextEmbeddingPipeline,
    TextRerankPipeline,
    VLMPipeline,
    WhisperPipeline,
    draft_model,
)
from genai_layer.speculation.draft_model import Place, open_draft
from genai_layer.testing.toy import answering_core

SPEECH = "automatic-speech-recognition-with-past"
FEATURES = "feature-extraction --library transformers"

# A folder's config.json; the pipelines that read such models; the usual one; its task.
KINDS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "encoder": (
        {"model_type": "bert", "architectures": ["BertModel"]},
        "embedding any",
        "TextEmbeddingPipeline",
        FEATURES,
    ),
    "encoder with the head of a language model": (
        {"model_type": "bert", "architectures": ["BertLMHeadModel"]},
        "embedding any",
        "TextEmbeddingPipeline",
        FEATURES,
    ),
    "encoder or classifier": (
        {"model_type": "bert"},
        "embedding any rerank",
        "TextEmbeddingPipeline",
        FEATURES,
    ),
    "masked": (
        {"model_type": "xlm-roberta", "architectures": ["XLMRobertaForMaskedLM"]},
        "embedding any",
        "TextEmbeddingPipeline",
        FEATURES,
    ),
    "classifier": (
        {"model_type": "bert", "architectures": ["BertForSequenceClassification"]},
        "embedding any rerank",
        "TextRerankPipeline",
        "text-classification",
    ),
    "decoder that ranks": (
        {"model_type": "qwen3", "architectures": ["Qwen3ForSequenceClassification"]},
        "embedding any rerank",
        "TextRerankPipeline",
        "text-classification",
    ),
    "speech": (
        {"model_type": "whisper", "is_encoder_decoder": True},
        "whisper",
        "WhisperPipeline",
        SPEECH,
    ),
    "vision": (
        {"model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"]},
        "vlm batching",
        "VLMPipeline",
        "image-text-to-text",
    ),
    "embedding of images": (
        {"model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"]},
        "any",
        "EmbeddingPipeline",
        FEATURES,
    ),
    "language": (
        {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]},
        "llm batching draft embedding any rerank",
        "LLMPipeline",
        "text-generation-with-past",
    ),
    "older language": (
        {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]},
        "llm batching draft embedding any rerank",
        "LLMPipeline",
        "text-generation-with-past",
    ),
}
UNREAD = {
    "T5ForConditionalGeneration is an encoder-decoder": {
        "config.json": {
            "model_type": "t5",
            "architectures": ["T5ForConditionalGeneration"],
            "is_encoder_decoder": True,
        }
    },
    "LlavaForConditionalGeneration is a vision language model of another family": {
        "config.json": {
            "architectures": ["LlavaForConditionalGeneration"],
            "vision_config": {"hidden_size": 8},
        }
    },
    "Wav2Vec2ForCTC is a speech model of another family than Whisper": {
        "config.json": {"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"]}
    },
    "ViTModel is a model of images": {
        "config.json": {"model_type": "vit", "architectures": ["ViTModel"]}
    },
    "StableDiffusionPipeline is a diffusion model": {
        "model_index.json": {"_class_name": "StableDiffusionPipeline"}
    },
}
PLACE: Any = Place("NPU", {}, answering_core([1]), None)  # pyright: ignore[reportArgumentType]
DOORS: dict[str, Callable[[Path], object]] = {
    "llm": lambda folder: LLMPipeline(folder, "NPU"),
    "batching": lambda folder: ContinuousBatchingPipeline(folder, SchedulerConfig(), "NPU"),
    "draft": lambda folder: open_draft(draft_model(folder, "NPU"), PLACE),
    "embedding": lambda folder: TextEmbeddingPipeline(folder, "NPU"),
    "any": lambda folder: EmbeddingPipeline(folder, "NPU"),
    "rerank": lambda folder: TextRerankPipeline(folder, "NPU"),
    "whisper": lambda folder: WhisperPipeline(folder, "NPU"),
    "vlm": lambda folder: VLMPipeline(folder, "NPU"),
}


def write(folder: Path, files: Mapping[str, object], exported: bool) -> Path:
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    if exported:
        part = "_language" if "_vl" in str(files) else ""
        (folder / f"openvino{part}_model.xml").touch()
    return folder


def refused(door: str, folder: Path) -> str:
    """Return the text of the error at a door."""
    with pytest.raises(ModelError) as caught:
        DOORS[door](folder)
    return str(caught.value)


@pytest.mark.parametrize("exported", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_each_door_names_the_pipeline_that_reads_a_model(
    tmp_path: Path, kind: str, exported: bool
) -> None:
    config, readers, usual, task = KINDS[kind]
    folder = write(tmp_path, {"config.json": config}, exported)
    command = f"optimum-cli export openvino -m {folder} --task {task} OUT"
    either = ", or TextEmbeddingPipeline" if usual == "TextRerankPipeline" else ""
    expected = f"; use {usual}{either}" if exported else f"; use {usual}, after {command}"
    for door in DOORS.keys() - set(readers.split()):
        text = refused(door, folder)
        assert text.startswith(f"{folder}: "), door
        assert text.endswith(expected), door
    for door in readers.split():
        assert "; use" not in refused(door, folder), "the folder lacks other files only"


@pytest.mark.parametrize("message", UNREAD)
def test_models_that_no_pipeline_reads_are_named(tmp_path: Path, message: str) -> None:
    folder = write(tmp_path, UNREAD[message], exported=False)
    for door in DOORS:
        text = refused(door, folder)
        assert message in text, door
        assert "; no pipeline reads such models; use a model" in text, door


def test_a_language_model_without_a_head_is_a_text_encoder(tmp_path: Path) -> None:
    config = {"model_type": "qwen3", "architectures": ["Qwen3Model"]}
    folder = write(tmp_path, {"config.json": config}, exported=False)
    for door in ("llm", "whisper"):
        assert "Qwen3Model is a text encoder of a language model; use Text" in refused(door, folder)


@pytest.mark.parametrize("exported", [False, True])
def test_whisper_is_the_only_type_at_its_door(tmp_path: Path, exported: bool) -> None:
    config = {"model_type": "t5", "architectures": ["T5EncoderModel"]}
    folder = write(tmp_path, {"config.json": config}, exported)
    assert "T5EncoderModel is a model of type t5" in refused("whisper", folder)


@pytest.mark.parametrize(
    ("door", "kind", "task"),
    [
        ("embedding", "encoder", FEATURES),
        ("embedding", "language", FEATURES),
        ("any", "classifier", FEATURES),
        ("rerank", "classifier", "text-classification"),
        ("whisper", "speech", SPEECH),
        ("vlm", "vision", "image-text-to-text"),
        ("batching", "vision", "image-text-to-text"),
    ],
)
def test_the_right_door_tells_how_to_export_a_hugging_face_folder(
    tmp_path: Path, door: str, kind: str, task: str
) -> None:
    folder = write(tmp_path, {"config.json": KINDS[kind][0]}, exported=False)
    assert refused(door, folder).endswith(
        f"optimum-cli export openvino -m {folder} --task {task} OUT"
    )


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"architectures": []},
        {"architectures": "BertModel", "model_type": ["bert"]},
        {"architectures": ["ChatGLMModel"], "model_type": "chatglm"},
        {"architectures": ["Qwen3Model"], "model_type": "qwen3"},
        {"architectures": ["Llama4ForConditionalGeneration"], "vision_config": {"a": 1}},
    ],
)
def test_a_model_that_may_be_a_language_model_passes(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    folder = write(tmp_path, {"config.json": config}, exported=True)
    with pytest.raises(ModelError, match=r"has no tokenizer\.json"):
        LLMPipeline(folder, "NPU")
