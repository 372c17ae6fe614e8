"""Arguments of ``EmbeddingPipeline.embed``.

Source: openvino_genai.EmbeddingPipeline.embed, docs/reference/genai.md#embeddings-of-images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from genai_layer.errors import PromptError
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
