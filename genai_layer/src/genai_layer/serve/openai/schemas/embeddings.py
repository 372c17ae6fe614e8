"""Bodies of /v1/embeddings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from genai_layer.serve.openai.schemas.base import Body, Inert, Reply
from genai_layer.serve.openai.schemas.usage import EmbeddingUsage

MOST_TEXTS = 2048


class EmbeddingRequest(Body):
    """Texts to embed; ids of tokens are not supported."""

    model: str
    input: str | Annotated[list[str], Field(min_length=1, max_length=MOST_TEXTS)]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: None = None
    user: Inert = None


class Embedding(Reply):
    """Embedding of one text."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str
    """Numbers; or base64 of their bytes as f32, little-endian."""


class EmbeddingReply(Reply):
    """Embeddings in the order of the texts."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage
