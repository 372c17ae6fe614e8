"""Tokenizer, model and default parameters of a model folder.

Source: openvino_genai's folders, docs/reference/genai.md#model-folders; Hugging Face's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from genai_layer.errors import ConfigError, ModelError
from genai_layer.files import is_file, is_folder, read_object, whole
from genai_layer.generation_config import GenerationConfig, stops_of_file
from genai_layer.tokenizer import Tokenizer


def read_tokenizer(folder: Path) -> Tokenizer:
    """Read the tokenizer.

    Raises:
        ModelError: folder or tokenizer is missing or broken.
    """
    if not is_folder(folder):
        raise ModelError(f"{folder}: no such folder")
    return Tokenizer(folder)


def find_model(folder: Path, needed: bool = True) -> Path:
    """Return the path for the runtime to compile: the IR if the folder has one, else the folder.

    Args:
        folder: the model's folder.
        needed: whether the folder must have a model.

    Raises:
        ModelError: the folder has no model.
    """
    if not is_folder(folder):
        raise ModelError(f"{folder}: no such folder")
    ir = folder / "openvino_model.xml"
    if is_file(ir):
        return ir
    if not needed or is_file(folder / "config.json"):
        return folder
    raise ModelError(f"{folder}: has neither openvino_model.xml nor config.json")


def read_generation_config(folder: Path, tokenizer: Tokenizer) -> GenerationConfig:
    """Read the default parameters.

    Stop tokens are those of generation_config.json, else those that config.json lists, else the
    tokenizer's end-of-text id.

    Raises:
        ModelError: a file is broken.
    """
    path = folder / "generation_config.json"
    config = GenerationConfig(path) if is_file(path) else GenerationConfig()
    if config.eos_token_id < 0:
        config = _with_listed_stops(config, folder / "config.json")
    add_end_of_text(config, tokenizer)
    return config


def _with_listed_stops(config: GenerationConfig, path: Path) -> GenerationConfig:
    """Return parameters with the stop tokens that config.json lists; one id is the tokenizer's.

    Source: transformers' GenerationConfig.from_model_config: the ids of ``text_config`` count if
    the model has none itself.
    """
    found = read_object(path)
    given: object = found.get("eos_token_id")
    text: object = found.get("text_config")
    if given is None and isinstance(text, dict):
        given = cast("dict[str, Any]", text).get("eos_token_id")
    elif not isinstance(given, list):
        return config
    try:
        return config.updated(stops_of_file(whole(cast(object, given))))
    except ConfigError as error:
        raise ModelError(f"{path}: {error}") from error


def add_end_of_text(config: GenerationConfig, tokenizer: Tokenizer) -> None:
    """Set the tokenizer's end-of-text id in parameters that have none."""
    if config.eos_token_id < 0 <= tokenizer.get_eos_token_id():
        config.set_eos_token_id(tokenizer.get_eos_token_id())
