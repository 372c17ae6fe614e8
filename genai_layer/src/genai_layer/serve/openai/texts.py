"""/v1/embeddings: embeddings of texts; /v1/rerank: documents by their relevance to a query.

The bodies of /v1/rerank have the form that Jina and Cohere share.

Source: docs/reference/openai.md#bodies, docs/reference/openai.md#rerank.
"""

from __future__ import annotations

import base64
from typing import Annotated, Literal

import numpy as np
from fastapi import APIRouter, Response
from pydantic import Field

from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.openai.bodies import BodyRoute
from genai_layer.serve.openai.counts import new_id
from genai_layer.serve.openai.schemas.base import Body, Inert, Reply
from genai_layer.serve.openai.schemas.errors import replies
from genai_layer.serve.openai.schemas.tokens import EmbeddingUsage

MOST_TEXTS = 2048
MOST_CHARACTERS = 1 << 18
"""Characters of a text: a text is encoded as a whole, however little of it the model reads."""

Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]


class EmbeddingRequest(Body):
    """Texts to embed; ids of tokens are not supported."""

    model: str
    input: Text | Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS)]
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

    text: Text


class RerankRequest(Body):
    """Query, and documents to rank."""

    model: str
    query: Text
    documents: Annotated[list[Text | Document], Field(min_length=1, max_length=MOST_TEXTS)]
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


def texts_router(models: ModelRegistry) -> APIRouter:
    """Return the routes of embeddings and of ranking."""
    router = APIRouter(route_class=BodyRoute)

    @router.post("/v1/embeddings", responses=replies(EmbeddingReply))
    async def create_embeddings(body: EmbeddingRequest) -> Response:
        """Return the embedding of each text."""
        return await _embed(models, body)

    @router.post("/v1/rerank", responses=replies(RerankReply))
    async def rank_documents(body: RerankRequest) -> Response:
        """Return the documents, the most relevant first."""
        return await _rank(models, body)

    return router


async def _embed(models: ModelRegistry, body: EmbeddingRequest) -> Response:
    texts = [body.input] if isinstance(body.input, str) else body.input
    model = await models.embedding(body.model)
    found = await model.embed(texts)
    packed = body.encoding_format == "base64"
    reply = EmbeddingReply(
        object="list",
        data=[
            Embedding(
                object="embedding", index=number, embedding=_packed(vector) if packed else vector
            )
            for number, vector in enumerate(found.vectors)
        ],
        model=model.name,
        usage=EmbeddingUsage(prompt_tokens=found.prompt_tokens, total_tokens=found.prompt_tokens),
    )
    return Response(reply.json_text(), media_type="application/json")


def _packed(vector: list[float]) -> str:
    """Return the base64 text of an embedding's f32 numbers, little-endian."""
    return base64.b64encode(np.array(vector, "<f4").tobytes()).decode()


async def _rank(models: ModelRegistry, body: RerankRequest) -> Response:
    documents = [one if isinstance(one, str) else one.text for one in body.documents]
    model = await models.rerank(body.model)
    found = await model.rerank(body.query, documents)
    results = [Rank(index=index, relevance_score=score) for index, score in found.scores]
    del results[body.top_n or len(results) :]
    if body.return_documents is not False:
        for rank in results:
            rank.document = RankedDocument(text=documents[rank.index])
    reply = RerankReply(
        id=new_id("rerank-"),
        model=model.name,
        results=results,
        usage=RerankUsage(prompt_tokens=found.prompt_tokens, total_tokens=found.prompt_tokens),
    )
    return Response(reply.json_text(), media_type="application/json")
