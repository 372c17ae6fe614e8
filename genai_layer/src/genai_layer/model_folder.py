"""Tokenizer, model and default parameters of a model folder.

Source: openvino_genai's folders, docs/reference/genai.md#model-folders; Hugging Face's.
"""

from __future__ import annotations

from pathlib import Path

from genai_layer.errors import ModelError
from genai_layer.files import is_file, is_folder
from genai_layer.generation_config import GenerationConfig
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
    """Read the default parameters; the tokenizer may add the end-of-text id.

    Raises:
        ModelError: the file is broken.
    """
    path = folder / "generation_config.json"
    config = GenerationConfig(path) if is_file(path) else GenerationConfig()
    add_end_of_text(config, tokenizer)
    return config


def add_end_of_text(config: GenerationConfig, tokenizer: Tokenizer) -> None:
    """Set the tokenizer's end-of-text id in parameters that have none."""
    if config.eos_token_id < 0 <= tokenizer.get_eos_token_id():
        config.set_eos_token_id(tokenizer.get_eos_token_id())
