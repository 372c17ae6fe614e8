"""Arguments of ``EmbeddingPipeline.embed``, and models of texts alone.

The latter are over ``TextEmbeddingPipeline``.

Source: openvino_genai.EmbeddingPipeline.embed, docs/reference/genai.md#embeddings-of-images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from genai_layer.errors import PromptError
from genai_layer.runtime import Array, Core
from genai_layer.texts.config import EmbeddingConfig
from genai_layer.texts.embedding import TextEmbeddingPipeline
from genai_layer.vision.visuals import ImageLike, VideoLike, VideoMetadata


@dataclass(frozen=True, slots=True)
class EmbedCall:
    """Arguments of one call."""

    texts: list[str]
    images: Sequence[ImageLike]
    videos: Sequence[VideoLike]
    metadata: Sequence[VideoMetadata]
    """Facts about all videos, or empty."""
    prompt: str | None
    """Instruction for the model."""


def texts_of(given: object) -> list[str]:
    """Return the texts of a call.

    Raises:
        PromptError: the argument is neither a text nor a list of texts.
    """
    texts = [given] if isinstance(given, str) else given
    if isinstance(texts, list | tuple):
        items = cast("Sequence[object]", texts)
        found = [item for item in items if isinstance(item, str)]
        if len(found) == len(items):
            return found
    raise PromptError(f"text = {given!r}: pass a text or a list of texts")


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
