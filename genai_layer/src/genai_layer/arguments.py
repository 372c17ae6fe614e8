"""Arguments of ``LLMPipeline``, whose positions depend on the first ones.

The model is in a folder, or it is the text and weights of an IR in memory.

Source: openvino_genai.LLMPipeline, docs/reference/genai.md#construction,
docs/reference/genai.md#model-folders.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from genai_layer.call_form import call_form
from genai_layer.checked import read_as
from genai_layer.errors import PropertyError
from genai_layer.generation_config import GenerationConfig
from genai_layer.model_folder import (
    add_end_of_text,
    find_model,
    read_generation_config,
    read_tokenizer,
)
from genai_layer.model_kinds import check_reader
from genai_layer.properties import with_dictionary
from genai_layer.runtime import AnyModel, Core
from genai_layer.tensor import HasData, is_tensor
from genai_layer.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's folder."""

    folder: Path

    def generation_config(self, tokenizer: Tokenizer) -> GenerationConfig:
        """Read the default parameters; errors as ``model_folder``."""
        return read_generation_config(self.folder, tokenizer)

    def model(self, core: Core, needed: bool) -> AnyModel:
        """Return the model for the runtime to compile; errors as ``model_folder``.

        Args:
            core: the runtime.
            needed: whether there must be a model.
        """
        return find_model(self.folder, needed)


@dataclass(frozen=True, slots=True)
class ModelInMemory:
    """A model that has no files, e.g. because they are encrypted."""

    text: str
    """Content of the ``openvino_model.xml``."""
    weights: HasData
    """Content of the ``.bin``, u8 [n]."""
    config: GenerationConfig
    """Default parameters."""

    def generation_config(self, tokenizer: Tokenizer) -> GenerationConfig:
        """Return a copy of the default parameters; the tokenizer may add the end-of-text id."""
        config = self.config.updated({})
        add_end_of_text(config, tokenizer)
        return config

    def model(self, core: Core, needed: bool) -> AnyModel:
        """Return the model for the runtime to compile.

        Raises:
            RuntimeError: the runtime cannot read it.
        """
        return core.read_model(self.text, self.weights)


_TO_CALLER = 7
"""Stack level of the pipeline's caller for warnings of ``with_dictionary``."""


Source = TypeVar("Source")


@dataclass(frozen=True, slots=True)
class Arguments(Generic[Source]):
    """Arguments of a pipeline by name."""

    source: Source
    tokenizer: Tokenizer
    device: str
    properties: dict[str, Any]


def read_arguments(
    given: Sequence[Any], named: Mapping[str, Any]
) -> Arguments[ModelFolder | ModelInMemory]:
    """Sort the arguments of a pipeline.

    Args:
        given: (folder, tokenizer, device, dictionary), (folder, device, dictionary), or (model,
            weights, tokenizer, device, generation config).
        named: more of them by name, and properties.

    Raises:
        TypeError: an argument is missing.
        ArgumentError: an argument is of another kind.
        PropertyError: there are two devices.
        ModelError: the folder has no tokenizer, or a broken one.
    """
    in_memory = "weights" in named or (len(given) > 1 and is_tensor(given[1]))
    form = _of_memory if in_memory else _of_folder
    return call_form("LLMPipeline", form, given, named)


def _of_folder(
    models_path: str | bytes | os.PathLike[str],
    tokenizer: Tokenizer | str | None = None,
    device: str | Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    **properties: Any,
) -> Arguments[ModelFolder | ModelInMemory]:
    """Sort the arguments of a folder; raises as ``read_arguments``."""
    if isinstance(tokenizer, str) and isinstance(device, Mapping):  # (folder, device, dictionary)
        device, config = None, device
    if config is not None:
        properties = with_dictionary(config, properties, stacklevel=_TO_CALLER)
    if isinstance(tokenizer, str):  # (folder, device)
        if device is not None:
            raise PropertyError("tokenizer is not a Tokenizer; pass one, or the device alone")
        tokenizer, device = None, tokenizer
    elif device is None:
        raise TypeError('LLMPipeline: the device is missing; pass it, e.g. device="NPU"')
    folder = Path(os.fsdecode(models_path))
    check_reader(folder, "LLMPipeline")
    return Arguments(
        ModelFolder(folder),
        tokenizer or read_tokenizer(folder),
        read_as("LLMPipeline: device", device, str),
        dict(properties),
    )


def _of_memory(
    model: str,
    weights: HasData,
    tokenizer: Tokenizer,
    device: str,
    generation_config: GenerationConfig | None = None,
    **properties: Any,
) -> Arguments[ModelFolder | ModelInMemory]:
    """Sort the arguments of a model in memory; raises as ``read_arguments``."""
    source = ModelInMemory(model, weights, generation_config or GenerationConfig())
    return Arguments(source, tokenizer, device, properties)
