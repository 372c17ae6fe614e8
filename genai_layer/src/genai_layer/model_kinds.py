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
_SPEECH = ModelKind("a speech recogniser", ("WhisperPipeline",))
_VISION = ModelKind("a vision language model", ("VLMPipeline", "ContinuousBatchingPipeline"))
_EMBEDS_IMAGES = ModelKind("an embedding model of images", ("EmbeddingPipeline",))
_ENCODER_DECODER = ModelKind("an encoder-decoder")
_OTHER_VISION = ModelKind("a vision language model of another family than Qwen2-VL")
_DIFFUSION = ModelKind("a diffusion model")

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
    **dict.fromkeys(_ENCODERS, _ENCODER),
}
"""Kinds by ``model_type``, of architectures with another ending."""


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
        return
    if pipeline not in kind.readers:
        raise ModelError(f"{folder}: {name} is {kind.noun}; {_remedy(folder, kind, exported)}")
    if not exported and not (kind is _LANGUAGE and pipeline in _UNEXPORTED):
        raise ModelError(
            f"{folder}: {pipeline} reads no Hugging Face folder of {name}; export it: "
            f"{_command(folder, export_task(folder, pipeline))}"
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
    return f"use {reader}" + ("" if exported else f", after {_command(folder, _TASKS[reader])}")


def _kind(folder: Path, config: Mapping[str, Any]) -> tuple[str, ModelKind | None]:
    """Return a model's name, and its kind if it is known."""
    if is_file(folder / "model_index.json"):
        return str(read_object(folder / "model_index.json").get("_class_name")), _DIFFUSION
    model_type = str(config.get("model_type"))
    name = _architecture(config) or model_type
    by_ending = [kind for ending, kind in _ENDINGS.items() if name.endswith(ending)]
    if by_ending:
        return name, by_ending[0]
    # An encoder with a classifier, which ranks texts, has an architecture that says so.
    if model_type in _TYPES and (name != model_type or model_type not in _ENCODERS):
        return name, _TYPES[model_type]
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
