"""Models of texts alone, over ``TextEmbeddingPipeline``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from genai_layer.embedding.embed_call import EmbedCall
from genai_layer.errors import PromptError
from genai_layer.runtime import Array, Core
from genai_layer.texts.config import EmbeddingConfig
from genai_layer.texts.embedding import TextEmbeddingPipeline


class TextModel:
    """Model of texts; arguments and errors as for ``EmbeddingPipeline``."""

    def __init__(
        self,
        folder: Path,
        device: str,
        config: EmbeddingConfig | None,
        core: Core | None,
        properties: Mapping[str, Any],
    ) -> None:
        self._pipeline = TextEmbeddingPipeline(folder, device, config, core=core, **properties)

    def embed(self, call: EmbedCall) -> Array:
        """Return embeddings f32 [texts, width].

        Raises:
            PromptError: there are images or videos, or a text has no tokens.
            RuntimeFailure: the runtime failed.
        """
        if len(call.images) or len(call.videos) or len(call.metadata):
            raise PromptError(
                "This model does not support image/video input; pass texts only, or export a model "
                "of the family qwen3_vl"
            )
        if not call.texts:
            return np.zeros((0, 0), np.float32)
        if call.prompt is None:
            vectors = self._pipeline.embed_documents(call.texts)
        else:
            vectors = self._pipeline.embed(call.texts, call.prompt)
        return np.array(vectors, np.float32)
