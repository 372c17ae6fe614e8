"""Kinds of models by ``config.json``, and the pipelines that read each kind.

A folder that its pipeline cannot read is rejected before the runtime is asked: only this layer
knows the pipeline that reads it, and the exporter's command for that pipeline.

Source: Hugging Face's config.json (``architectures``, ``model_type``); tasks of optimum-cli export
openvino, docs/reference/genai.md#model-folders.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from genai_layer.errors import ModelError
from genai_layer.files import is_file, is_folder, read_object


@dataclass(frozen=True, slots=True)
class ModelKind:
    """Models that the same pipelines read."""

    noun: str
    readers: tuple[str, ...] = ()
    """Pipelines that read such models, the usual one first."""


_TASKS = {
    "LLMPipeline": "text-generation-with-past",
    "TextEmbeddingPipeline": "feature-extraction --library transformers",
    "EmbeddingPipeline": "feature-extraction --library transformers",
    "TextRerankPipeline": "text-classification",
    "WhisperPipeline": "automatic-speech-recognition-with-past",
    "VLMPipeline": "image-text-to-text",
}
"""The exporter's task for the models of each pipeline; sentence-transformers' export pools."""

_UNEXPORTED = ("LLMPipeline", "ContinuousBatchingPipeline", "TextRerankPipeline")
"""Pipelines that read a language model's Hugging Face folder."""

_EMBEDS = ("TextEmbeddingPipeline", "EmbeddingPipeline")

_LANGUAGE = ModelKind("a language model", (*_UNEXPORTED, *_EMBEDS))
_ENCODER = ModelKind("a text encoder", _EMBEDS)
_CLASSIFIER = ModelKind("a text classifier", ("TextRerankPipeline", *_EMBEDS))
_EITHER = ModelKind("a text encoder or a text classifier", (*_EMBEDS, "TextRerankPipeline"))
_BASE = ModelKind("a text encoder of a language model", _EMBEDS)
_SPEECH = ModelKind("a speech recogniser", ("WhisperPipeline",))
_VISION = ModelKind("a vision language model", ("VLMPipeline", "ContinuousBatchingPipeline"))
_EMBEDS_IMAGES = ModelKind("an embedding model of images", ("EmbeddingPipeline",))
_ENCODER_DECODER = ModelKind("an encoder-decoder")
_OTHER_VISION = ModelKind("a vision language model of another family than Qwen2-VL")
_DIFFUSION = ModelKind("a diffusion model")
_OTHER_SPEECH = ModelKind("a speech model of another family than Whisper")
_IMAGES = ModelKind("a model of images")

_ENDINGS: Mapping[str, ModelKind] = {
    "ForCausalLM": _LANGUAGE,
    "LMHeadModel": _LANGUAGE,
    "ForSequenceClassification": _CLASSIFIER,
}
"""Kinds by the ending of an architecture."""

_ENCODERS = (
    *("albert", "bert", "camembert", "convbert", "data2vec-text", "deberta", "deberta-v2"),
    *("distilbert", "electra", "ibert", "mobilebert", "mpnet", "nystromformer", "rembert"),
    *("roberta", "roformer", "squeezebert", "xlm-roberta"),
)
"""Text encoders that the exporter supports."""
_TYPES: Mapping[str, ModelKind] = {
    "whisper": _SPEECH,
    "qwen2_vl": _VISION,
    "qwen3_vl": _EMBEDS_IMAGES,
    **dict.fromkeys(("hubert", "wav2vec2", "wavlm"), _OTHER_SPEECH),
    **dict.fromkeys(("beit", "convnext", "deit", "resnet", "swin", "vit"), _IMAGES),
    **dict.fromkeys(_ENCODERS, _ENCODER),
}
"""Kinds by ``model_type``, of architectures with another ending."""

_BASES = tuple(f"{family}Model" for family in ("Gemma3Text", "Llama", "Mistral", "Qwen2", "Qwen3"))
"""Architectures of language models without a head; an exported one may have a head."""


def check_reader(folder: Path, pipeline: str, imported: bool = False) -> None:
    """Reject a folder that a pipeline cannot read. Models of unknown kinds, and no folder, pass.

    Args:
        folder: the model's folder.
        pipeline: name of the pipeline.
        imported: True if the compiled model comes from a blob.

    Raises:
        ModelError: another pipeline reads the model, or none; or it is not exported.
    """
    if not is_folder(folder):
        return  # whatever reads the first file names the folder
    config, exported = read_object(folder / "config.json"), imported or _is_exported(folder)
    name, kind = _kind(folder, config)
    if kind is None:
        _check_whisper(folder, config, pipeline)
        return
    if pipeline not in kind.readers:
        raise ModelError(f"{folder}: {name} is {kind.noun}; {_remedy(folder, kind, exported)}")
    if not exported and not (kind is _LANGUAGE and pipeline in _UNEXPORTED):
        raise ModelError(
            f"{folder}: {pipeline} reads no Hugging Face folder of {name}; export it: "
            f"{_command(folder, export_task(folder, pipeline))}"
        )


def _check_whisper(folder: Path, config: Mapping[str, Any], pipeline: str) -> None:
    """Reject models of unknown kinds that are of another type than the one that Whisper has."""
    model_type = config.get("model_type")
    if pipeline == "WhisperPipeline" and model_type not in (None, "whisper"):
        raise ModelError(
            f"{folder}: {_architecture(config) or model_type} is a model of type {model_type}, and "
            "WhisperPipeline reads whisper alone; use a Whisper model"
        )


def export_task(folder: Path, pipeline: str) -> str:
    """Return the exporter's task for a pipeline that reads a folder's kind of models."""
    _, kind = _kind(folder, read_object(folder / "config.json"))
    if kind is _LANGUAGE and pipeline == "TextRerankPipeline":
        return _TASKS["LLMPipeline"]
    return _TASKS[pipeline if pipeline in _TASKS or kind is None else kind.readers[0]]


def _command(folder: Path, task: str) -> str:
    return f"optimum-cli export openvino -m {shlex.quote(str(folder))} --task {task} OUT"


def _remedy(folder: Path, kind: ModelKind, exported: bool) -> str:
    if not kind.readers:
        return "no pipeline reads such models; use a model that is in docs/models.md"
    reader = kind.readers[0]
    if not exported:
        return f"use {reader}, after {_command(folder, _TASKS[reader])}"
    # A classifier may have been exported for either task.
    return f"use {reader}" + (f", or {_EMBEDS[0]}" if kind is _CLASSIFIER else "")


def _kind(folder: Path, config: Mapping[str, Any]) -> tuple[str, ModelKind | None]:
    """Return a model's name, and its kind if it is known."""
    if is_file(folder / "model_index.json"):
        return str(read_object(folder / "model_index.json").get("_class_name")), _DIFFUSION
    model_type = str(config.get("model_type"))
    name = _architecture(config) or model_type
    by_ending = [kind for ending, kind in _ENDINGS.items() if name.endswith(ending)]
    # The exporter takes encoders with the head of a language model (BertLMHeadModel) as encoders.
    if by_ending and not (by_ending[0] is _LANGUAGE and model_type in _ENCODERS):
        return name, by_ending[0]
    if model_type in _TYPES:
        unnamed = name == model_type and model_type in _ENCODERS
        return name, _EITHER if unnamed else _TYPES[model_type]
    if name in _BASES and not _is_exported(folder):
        return name, _BASE
    if config.get("is_encoder_decoder") is True:
        return name, _ENCODER_DECODER
    sees = bool(config.get("vision_config")) and not is_file(folder / "openvino_model.xml")
    return name, _OTHER_VISION if sees else None


def _architecture(config: Mapping[str, Any]) -> str:
    """Return the first architecture; empty if there is none."""
    found: object = config.get("architectures")
    return str(cast("list[object]", found)[0]) if isinstance(found, list) and found else ""


def _is_exported(folder: Path) -> bool:
    """Return whether a folder has an exported model, or parts of one."""
    parts = ("", "_encoder", "_decoder", "_language")
    return any(is_file(folder / f"openvino{part}_model.xml") for part in parts)
