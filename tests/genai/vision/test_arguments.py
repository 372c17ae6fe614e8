"""Arguments of ``VLMPipeline``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genai_layer import GenerationConfig, Tensor, Tokenizer
from genai_layer.vision.model_source import ModelsInFolder, ModelsInMemory, read_arguments

MODELS = {"language": ("<net/>", Tensor(np.zeros(8, np.uint8)))}


def test_a_folder_has_its_tokenizer(folder: Path) -> None:
    for given in ((folder, "NPU"), (str(folder), "NPU"), (bytes(folder), "NPU")):
        found = read_arguments(given, {"CACHE_DIR": "a"})
        assert (found.source, found.device) == (ModelsInFolder(folder), "NPU")
        assert found.properties == {"CACHE_DIR": "a"}


def test_models_in_memory_have_a_folder_of_configurations(folder: Path) -> None:
    tokenizer, config = Tokenizer(folder), GenerationConfig(max_new_tokens=3)
    names = ("models", "tokenizer", "config_dir_path", "device", "generation_config")
    given = (MODELS, tokenizer, folder, "CPU", config)
    expected = ModelsInMemory(MODELS, folder, config)
    for found in (
        read_arguments(given, {"CACHE_DIR": "a"}),
        read_arguments((), dict(zip(names, given, strict=True)) | {"CACHE_DIR": "a"}),
    ):
        assert (found.source, found.tokenizer, found.device) == (expected, tokenizer, "CPU")
        assert found.properties == {"CACHE_DIR": "a"}
    found = read_arguments(given[:4], {}).source
    assert found.generation_config(tokenizer).max_new_tokens == GenerationConfig().max_new_tokens


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((MODELS, "folder", "NPU"), "'device'"),
        ((MODELS, "tokenizer", "folder", "NPU"), "pass a Tokenizer"),
        ((), "'models_path'"),
    ],
)
def test_missing_arguments_are_type_errors(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        read_arguments(given, {})
