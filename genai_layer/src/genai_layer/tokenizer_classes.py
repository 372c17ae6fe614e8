"""Tokenizer classes of transformers 4 that change the tokenizer of tokenizer.json.

A class has defaults for entries of tokenizer_config.json; its names here are without "Fast". Other
classes have the defaults of PreTrainedTokenizerFast: none.

Source: transformers 4.57.6, measured; docs/reference/genai.md#tokenizer-settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from genai_layer.tokenizer_model_types import CLASS_OF_TYPE

ADDS_BOS_AND_EOS = frozenset({"Llama", "CodeLlama", "Gemma", "Cohere", "GPTNeoX"})
"""Classes that put ``bos_token`` and ``eos_token`` around a text, instead of tokenizer.json's."""

SETS_CASE = frozenset(
    {"Bert", "ConvBert", "DistilBert", "Electra", "MobileBert", "MPNet", "SqueezeBert"}
)
"""Classes that set the case and the accents of BertNormalizer."""

_LSTRIP = {"lstrip": True}
_MASK_FLAGS = {
    **dict.fromkeys(("Roberta", "XLMRoberta", "Longformer", "Camembert", "MPNet"), _LSTRIP),
    "Bart": _LSTRIP | {"normalized": True},
}
"""Flags of a mask token that is given as a text."""

_END = "<|endoftext|>"
_SENTENCE = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
_LEFT = {"add_bos_token": True, "add_eos_token": False, "padding_side": "left"}
_LLAMA = _SENTENCE | _LEFT | {"add_prefix_space": None}
_CASE = {"do_lower_case": True, "strip_accents": None}
_BERT = {
    **_CASE,
    "tokenize_chinese_chars": True,
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "Llama": _LLAMA,
    "CodeLlama": _LLAMA,
    "Gemma": _LEFT
    | {"bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>"},
    "Cohere": _LEFT
    | {
        "bos_token": "<BOS_TOKEN>",
        "eos_token": "<|END_OF_TURN_TOKEN|>",
        "unk_token": "<UNK>",
    },
    "GPTNeoX": {"bos_token": _END, "eos_token": _END, "unk_token": _END},
    "GPT2": {"bos_token": _END, "eos_token": _END, "unk_token": _END},
    "Qwen2": {"eos_token": _END, "unk_token": _END, "pad_token": _END},
    "MPNet": _CASE
    | _SENTENCE
    | {
        "unk_token": "[UNK]",
        "sep_token": "</s>",
        "pad_token": "<pad>",
        "cls_token": "<s>",
        "mask_token": "<mask>",
    },
} | dict.fromkeys(SETS_CASE - {"MPNet"}, _BERT)


def with_class(settings: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with a class: their own, else that of config.json, else of its model.

    Without a class of their own, settings beside a config.json of transformers 5 are of version 5.
    """
    if settings.get("tokenizer_class") is not None:
        return {**settings}
    version = config.get("transformers_version")
    if isinstance(version, str) and not re.match(r"[0-4]\.", version):
        return {**settings, "tokenizer_class": _VERSION_5}
    of_type = CLASS_OF_TYPE.get(str(config.get("model_type")))
    return {**settings, "tokenizer_class": config.get("tokenizer_class") or of_type}


_VERSION_5 = "TokenizersBackend"


def class_of(settings: Mapping[str, Any]) -> str:
    """Return the name of the class, without "TokenizerFast" or "Tokenizer"; empty if none is given.

    Args:
        settings: entries of tokenizer_config.json.
    """
    name = settings.get("tokenizer_class")
    return name.removesuffix("Fast").removesuffix("Tokenizer") if isinstance(name, str) else ""


def is_complete(settings: Mapping[str, Any]) -> bool:
    """Return whether transformers 5 wrote the settings: tokenizer.json then has their effects."""
    return "backend" in settings or settings.get("tokenizer_class") == _VERSION_5


def with_defaults(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the defaults of their class; 5 writes all but the padding side."""
    name = class_of(settings)
    defaults = _DEFAULTS.get(name, {})
    if is_complete(settings):
        return {key: value for key, value in defaults.items() if key == "padding_side"} | settings
    merged = {**defaults, **settings}
    mask = merged.get("mask_token")
    if name in _MASK_FLAGS and isinstance(mask, str):
        merged["mask_token"] = {"content": mask, **_MASK_FLAGS[name]}
    return merged
