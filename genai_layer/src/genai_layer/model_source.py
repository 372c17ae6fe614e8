"""Sources of a pipeline's model: a folder, or the text and weights of an IR in memory.

Source: openvino_genai.LLMPipeline, docs/reference/genai.md#construction,
docs/reference/genai.md#model-folders.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from genai_layer.generation_config import GenerationConfig
from genai_layer.model_folder import add_end_of_text, find_model, read_generation_config
from genai_layer.runtime import AnyModel, Core
from genai_layer.tensor import HasData
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
