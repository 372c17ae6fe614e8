"""Bodies of /v1/embeddings, and of /v1/rerank in the form that Jina and Cohere share.

Source: docs/reference/openai.md#rerank.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from genai_layer.serve.openai.schemas.base import Body, Inert, Reply
from genai_layer.serve.openai.schemas.tokens import EmbeddingUsage

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


class Document(Body):
    """Document as an object."""

    text: str


class RerankRequest(Body):
    """Query, and documents to rank."""

    model: str
    query: str
    documents: Annotated[list[str | Document], Field(min_length=1, max_length=MOST_TEXTS)]
    top_n: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    """Number of results; by default all documents."""
    return_documents: bool | None = None
    """True by default."""
    max_tokens_per_doc: None = None


class RankedDocument(Reply):
    """Text of a document."""

    text: str


class Rank(Reply):
    """Document with its relevance."""

    index: int
    """Place among the documents of the request."""
    relevance_score: float
    """From 0 to 1."""
    document: RankedDocument | None = None


class RerankUsage(Reply):
    """Counts of tokens."""

    prompt_tokens: int
    total_tokens: int


class RerankReply(Reply):
    """Documents, the most relevant first."""

    id: str
    model: str
    results: list[Rank]
    usage: RerankUsage
