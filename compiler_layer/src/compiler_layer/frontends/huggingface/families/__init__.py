"""Supported model families: one short function each, from config to decoder.

To add a family, describe its differences in the terms of ``decoder`` and add it to the table.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from compiler_layer.errors import UnsupportedModel
from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import Decoder
from compiler_layer.frontends.huggingface.families.attention import refuse_windows
from compiler_layer.frontends.huggingface.families.defaults import (
    ALIASES,
    DEFAULTS,
    NEVER_NULL,
    WITHOUT_WINDOWS,
)
from compiler_layer.frontends.huggingface.families.gemma import gemma2, gemma3
from compiler_layer.frontends.huggingface.families.gpt import gpt2, gpt_neox, starcoder2
from compiler_layer.frontends.huggingface.families.llama import (
    granite,
    llama,
    mistral,
    olmo2,
    phi3,
    qwen2,
    qwen3,
    smollm3,
)

FAMILIES: dict[str, Callable[[Config], Decoder]] = {
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "gpt2": gpt2,
    "gpt_neox": gpt_neox,
    "granite": granite,
    "llama": llama,
    "mistral": mistral,
    "olmo2": olmo2,
    "phi3": phi3,
    "qwen2": qwen2,
    "qwen3": qwen3,
    "smollm3": smollm3,
    "starcoder2": starcoder2,
}
"""Families by the config's ``model_type``."""


_TASKS = {
    "WhisperForConditionalGeneration": "automatic-speech-recognition-with-past",
    "T5ForConditionalGeneration": "text2text-generation-with-past",
    "BartForConditionalGeneration": "text2text-generation-with-past",
    "VLForConditionalGeneration": "image-text-to-text",
    "ForSequenceClassification": "text-classification",
    "ForMaskedLM": "feature-extraction",
    "EncoderModel": "feature-extraction",
    "ForCausalLM": "text-generation-with-past",
    "LMHeadModel": "text-generation-with-past",
}
"""Tasks of ``optimum-cli export openvino``, by the end of an architecture's name."""

_TYPE_TASKS = {
    **dict.fromkeys(("albert", "bert", "camembert", "deberta", "deberta-v2"), "feature-extraction"),
    **dict.fromkeys(("distilbert", "electra", "mpnet", "roberta"), "feature-extraction"),
    "xlm-roberta": "feature-extraction",
    "whisper": "automatic-speech-recognition-with-past",
    **dict.fromkeys(("bart", "marian", "mbart", "t5"), "text2text-generation-with-past"),
}
"""Tasks by ``model_type``, if the architecture has none."""

_UNREAD = ("beit", "convnext", "deit", "hubert", "resnet", "swin", "vit", "wav2vec2", "wavlm")
"""Model types of images and sounds that no part of this stack reads."""


def read_decoder(path: Path) -> Decoder:
    """Read the decoder that a ``config.json`` describes.

    Raises:
        BadModel: the file is missing or not JSON, or a value is missing or of a wrong type.
        UnsupportedModel: the family, or a variation of one, is not supported.
    """
    config = Config.read(path)
    kind = config.value("model_type")
    family = FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None:
        raise UnsupportedModel(
            f"{path}: model_type {kind!r} is not supported as a Hugging Face folder (supported: "
            f"{', '.join(FAMILIES)}); {_remedy(config)}"
        )
    config = config.completed(DEFAULTS[kind], ALIASES.get(kind, {}))
    config.refuse("quantization_config", "per_layer_config", "transformers_weights")
    config.require("is_causal", True)
    for key in NEVER_NULL.get(kind, ()):
        config.refuse_null(key)
    if kind in WITHOUT_WINDOWS:
        refuse_windows(config)
    return replace(family(config), stored_head_precedes=not config.before_5)


def _remedy(config: Config) -> str:
    """Return the remedy for a model of an unsupported type."""
    if config.value("model_type") in _UNREAD:
        return "no part of this stack reads such models; use a model that is in docs/models.md"
    task, folder = _task(config), shlex.quote(str(config.path.parent))
    command = f"optimum-cli export openvino -m {folder} --task {task or 'TASK'} OUT"
    hint = "" if task else "; optimum-cli export openvino --help lists the tasks"
    return f"to run the model, export it to OpenVINO IR: {command}{hint}"


def _task(config: Config) -> str | None:
    """Return the exporter's task, which the exporter does not infer; None if it is unknown."""
    listed: Any = config.value("architectures")
    names = cast(list[Any], listed) if isinstance(listed, list) else []
    name = str(names[0]) if names else ""
    by_type = _TYPE_TASKS.get(str(config.value("model_type")))
    found = next((task for end, task in _TASKS.items() if name.endswith(end)), None)
    # The exporter generates no text with encoders, although there are classes (BertLMHeadModel).
    encodes = by_type == "feature-extraction" and found == "text-generation-with-past"
    return by_type if encodes else found or by_type
