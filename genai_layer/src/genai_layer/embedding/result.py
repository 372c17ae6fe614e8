"""Result of ``EmbeddingPipeline.embed``.

Source: openvino_genai.EmbedResult.
"""

from __future__ import annotations

from dataclasses import dataclass

from genai_layer.tensor import HasData


@dataclass(slots=True)
class EmbedResult:
    """Embeddings of the texts of a call."""

    embeddings: HasData
    """Tensor f32 [texts, width]."""
