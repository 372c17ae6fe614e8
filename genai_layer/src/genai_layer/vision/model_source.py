"""Arguments of ``VLMPipeline``, which has two forms, and the sources of its models.

The models are in a folder, or they are IRs in memory with a folder of configurations. On device
NPU, NPUW's properties are for the language model, the others for all models.

Source: openvino_genai.VLMPipeline, docs/reference/genai.md#vision-language-models; ours:
openvino_genai runs the vision encoder on the CPU then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from genai_layer.arguments import Arguments
from genai_layer.call_form import call_form
from genai_layer.errors import ModelError, PropertyError, runtime_failures
from genai_layer.files import is_file
from genai_layer.generation_config import GenerationConfig
from genai_layer.model_folder import add_end_of_text, read_generation_config, read_tokenizer
from genai_layer.model_kinds import check_reader
from genai_layer.npu import StaticLengths, encoder_properties, npu_properties
from genai_layer.runtime import AnyModel, Core
from genai_layer.tensor import HasData, is_tensor
from genai_layer.tokenizer import Tokenizer

_UNSUPPORTED = ("BLOB_PATH", "EXPORT_BLOB")


def split_properties(
    properties: Mapping[str, Any], step: int = 1
) -> tuple[dict[str, Any], dict[str, Any], StaticLengths | None]:
    """Return the language model's properties, those of the other models, and the lengths.

    Args:
        properties: the pipeline's.
        step: tokens of a generate step.

    Raises:
        PropertyError: a property is not supported, or see ``npu_properties``.
    """
    for name in _UNSUPPORTED:
        if name in properties:
            raise PropertyError(f"{name} is not supported by VLMPipeline; use CACHE_DIR")
    language, lengths = npu_properties(properties, step)
    return language, encoder_properties(language), lengths


@dataclass(frozen=True, slots=True)
class ModelsInFolder:
    """Models ``openvino_<part>_model.xml`` of a folder."""

    folder: Path
    task: str = "image-text-to-text"
    """The exporter's task for such models."""

    def generation_config(self, tokenizer: Tokenizer) -> GenerationConfig:
        """Read the default parameters; errors as ``model_folder``."""
        return read_generation_config(self.folder, tokenizer)

    def model(self, core: Core, part: str) -> AnyModel:
        """Return a model for the runtime to compile.

        Raises:
            ModelError: the folder has no such model.
        """
        path = self.folder / f"openvino_{part}_model.xml"
        if not is_file(path):
            raise ModelError(
                f"{path}: no such file; export the model with optimum-cli export openvino --task "
                f"{self.task}"
            )
        return path


@dataclass(frozen=True, slots=True)
class ModelsInMemory:
    """Models that have no files, e.g. because they are encrypted."""

    models: Mapping[str, tuple[str, HasData]]
    """Content of the ``.xml``, and of the ``.bin`` u8 [n], by part."""
    folder: Path
    """Folder of config.json and the settings of images."""
    config: GenerationConfig
    """Default parameters."""

    def generation_config(self, tokenizer: Tokenizer) -> GenerationConfig:
        """Return a copy of the default parameters; the tokenizer may add the end-of-text id."""
        config = self.config.updated({})
        add_end_of_text(config, tokenizer)
        return config

    def model(self, core: Core, part: str) -> AnyModel:
        """Return a model for the runtime to compile.

        Raises:
            ModelError: there is no such model, or it is no pair of a text and a tensor.
            RuntimeFailure: the runtime cannot read it.
        """
        if part not in self.models:
            raise ModelError(
                f"models has no {part!r}; pass the IR openvino_{part}_model as (text, weights)"
            )
        model: object = self.models[part]
        if not _is_pair(model):
            raise ModelError(f"models[{part!r}]: not an IR in memory; pass (text, weights)")
        text, weights = self.models[part]
        with runtime_failures(f"models[{part!r}]"):
            return core.read_model(text, weights)


def _is_pair(model: object) -> bool:
    """Return whether a model is a pair of a text and a tensor."""
    pair = cast("tuple[object, ...]", model) if isinstance(model, tuple | list) else ()
    return len(pair) == 2 and isinstance(pair[0], str) and is_tensor(pair[1])


def read_arguments(
    given: Sequence[Any], named: Mapping[str, Any]
) -> Arguments[ModelsInFolder | ModelsInMemory]:
    """Sort the arguments of a pipeline.

    Args:
        given: (folder, device), or (models, tokenizer, folder of configurations, device,
            generation config).
        named: more of them by name, and properties.

    Raises:
        TypeError: an argument is missing.
        ArgumentError: an argument is of another kind.
        ModelError: the folder has no tokenizer, or a broken one.
    """
    in_memory = "models" in named or (len(given) > 0 and isinstance(given[0], Mapping))
    form = _of_memory if in_memory else _of_folder
    return call_form("VLMPipeline", form, given, named)


def _of_folder(
    models_path: str | bytes | os.PathLike[str], device: str, **properties: Any
) -> Arguments[ModelsInFolder | ModelsInMemory]:
    folder = Path(os.fsdecode(models_path))
    check_reader(folder, "VLMPipeline")
    return Arguments(ModelsInFolder(folder), read_tokenizer(folder), device, properties)


def _of_memory(
    models: Mapping[str, Any],
    tokenizer: Tokenizer,
    config_dir_path: str | bytes | os.PathLike[str],
    device: str,
    generation_config: GenerationConfig | None = None,
    **properties: Any,
) -> Arguments[ModelsInFolder | ModelsInMemory]:
    folder = Path(os.fsdecode(config_dir_path))
    source = ModelsInMemory(models, folder, generation_config or GenerationConfig())
    return Arguments(source, tokenizer, device, properties)
