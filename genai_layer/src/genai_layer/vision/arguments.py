"""Arguments of ``VLMPipeline``, which has two forms.

Source: openvino_genai.VLMPipeline, docs/reference/genai.md#vision-language-models.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genai_layer.call_form import call_form
from genai_layer.generation_config import GenerationConfig
from genai_layer.model_folder import read_tokenizer
from genai_layer.tensor import HasData
from genai_layer.tokenizer import Tokenizer
from genai_layer.vision.model_source import ModelsInFolder, ModelsInMemory


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments by name."""

    source: ModelsInFolder | ModelsInMemory
    tokenizer: Tokenizer
    device: str
    properties: dict[str, Any]


def read_arguments(given: Sequence[Any], named: Mapping[str, Any]) -> Arguments:
    """Sort the arguments of a pipeline.

    Args:
        given: (folder, device), or (models, tokenizer, folder of configurations, device,
            generation config).
        named: more of them by name, and properties.

    Raises:
        TypeError: an argument is missing, or models in memory have no Tokenizer.
        ModelError: the folder has no tokenizer, or a broken one.
    """
    in_memory = "models" in named or (len(given) > 0 and isinstance(given[0], Mapping))
    form = _of_memory if in_memory else _of_folder
    return call_form("VLMPipeline", form, given, named)


def _of_folder(
    models_path: str | bytes | os.PathLike[str], device: str, **properties: Any
) -> Arguments:
    folder = Path(os.fsdecode(models_path))
    return Arguments(ModelsInFolder(folder), read_tokenizer(folder), device, properties)


def _of_memory(
    models: Mapping[str, tuple[str, HasData]],
    tokenizer: object,
    config_dir_path: str | bytes | os.PathLike[str],
    device: str,
    generation_config: GenerationConfig | None = None,
    **properties: Any,
) -> Arguments:
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError("VLMPipeline: models in memory need a Tokenizer; pass it after models")
    folder = Path(os.fsdecode(config_dir_path))
    source = ModelsInMemory(models, folder, generation_config or GenerationConfig())
    return Arguments(source, tokenizer, device, properties)
