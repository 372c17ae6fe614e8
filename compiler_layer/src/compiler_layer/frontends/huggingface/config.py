"""``config.json`` of a Llama-family model, checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from compiler_layer.errors import BadModel, UnsupportedModel

MODEL_TYPES = ("llama",)
"""The values of ``model_type`` that are understood."""


@dataclass(frozen=True, slots=True)
class LlamaConfig:
    """What the graph of a Llama-family model depends on."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    tie_word_embeddings: bool


def read_config(folder: Path) -> LlamaConfig:
    """Read a folder's ``config.json``.

    Raises:
        BadModel: it is missing, no JSON, or a value is missing or of a wrong type.
        UnsupportedModel: another architecture, or a variation that is not understood.
    """
    path = folder / "config.json"
    try:
        values: Any = json.loads(path.read_text())
    except OSError as error:
        raise BadModel(path, error.strerror or str(error)) from None
    except ValueError as error:
        raise BadModel(path, f"no JSON: {error}") from None
    if not isinstance(values, dict):
        raise BadModel(path, "no JSON object")
    return _checked(path, cast(dict[str, Any], values))


def _checked(path: Path, values: Mapping[str, Any]) -> LlamaConfig:
    kind = values.get("model_type")
    if kind not in MODEL_TYPES:
        raise UnsupportedModel(
            f"{path}: model_type {kind!r} is not supported; supported: {', '.join(MODEL_TYPES)}"
        )
    _refuse_variations(path, values)
    heads = _positive(path, values, "num_attention_heads")
    hidden = _positive(path, values, "hidden_size")
    config = LlamaConfig(
        vocab_size=_positive(path, values, "vocab_size"),
        hidden_size=hidden,
        intermediate_size=_positive(path, values, "intermediate_size"),
        num_hidden_layers=_positive(path, values, "num_hidden_layers"),
        num_attention_heads=heads,
        num_key_value_heads=_positive(path, values, "num_key_value_heads", heads),
        head_dim=_positive(path, values, "head_dim", hidden // heads),
        rms_norm_eps=_number(path, values, "rms_norm_eps", 1e-6),
        rope_theta=_number(path, _rope(values), "rope_theta", 10000.0),
        tie_word_embeddings=bool(values.get("tie_word_embeddings", False)),
    )
    if config.num_attention_heads % config.num_key_value_heads or config.head_dim % 2:
        raise BadModel(
            path, "num_key_value_heads must divide num_attention_heads, head_dim be even"
        )
    return config


def _rope(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where rope_theta stands: at the top, or since transformers 5 in ``rope_parameters``."""
    nested = values.get("rope_parameters")
    return cast(Mapping[str, Any], nested) if isinstance(nested, dict) else values


def _refuse_variations(path: Path, values: Mapping[str, Any]) -> None:
    scaling: Any = values.get("rope_scaling") or _rope(values)
    rope_type = scaling.get("rope_type", scaling.get("type", "default"))
    if rope_type != "default":
        raise UnsupportedModel(f"{path}: rope_type {rope_type!r} is not supported")
    for key, plain in (("attention_bias", False), ("mlp_bias", False), ("hidden_act", "silu")):
        if values.get(key, plain) != plain:
            raise UnsupportedModel(f"{path}: {key} = {values[key]!r} is not supported")


def _positive(path: Path, values: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = values.get(key)
    if value is None:
        value = default
    if type(value) is not int or value <= 0:
        raise BadModel(path, f"{key} must be a positive integer, not {value!r}")
    return value


def _number(path: Path, values: Mapping[str, Any], key: str, default: float) -> float:
    value = values.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise BadModel(path, f"{key} must be a positive number, not {value!r}")
    return float(value)
