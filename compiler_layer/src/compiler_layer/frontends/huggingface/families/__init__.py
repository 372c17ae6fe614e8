"""Supported model families: one short function each, from config to decoder.

To add a family, describe its differences in the terms of ``decoder`` and add it to the table.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from compiler_layer.errors import UnsupportedModel
from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import Decoder
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


def read_decoder(path: Path) -> Decoder:
    """Read the decoder that a ``config.json`` describes.

    Raises:
        BadModel: the file is missing or not JSON, or a value is missing or of a wrong type.
        UnsupportedModel: the family, or a variation of one, is not supported.
    """
    config = Config.read(path)
    kind = config.values.get("model_type")
    family = FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None:
        raise UnsupportedModel(
            f"{path}: model_type {kind!r} is not supported as a Hugging Face folder (supported: "
            f"{', '.join(FAMILIES)}); to run the model, export it to OpenVINO IR: optimum-cli "
            f"export openvino -m {shlex.quote(str(path.parent))} --task "
            "text-generation-with-past OUT"
        )
    config.refuse_unless("quantization_config", None)
    return family(config)
