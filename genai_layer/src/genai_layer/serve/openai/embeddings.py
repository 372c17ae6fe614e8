"""/v1/embeddings: embeddings of texts.

Source: docs/reference/openai.md#bodies.
"""

from __future__ import annotations

import base64

import numpy as np
from fastapi import APIRouter, Response

from genai_layer.serve.engine.contract import Models
from genai_layer.serve.openai.schemas.errors import replies
from genai_layer.serve.openai.schemas.texts import (
    Embedding,
    EmbeddingReply,
    EmbeddingRequest,
)
from genai_layer.serve.openai.schemas.tokens import EmbeddingUsage


def embeddings_router(models: Models) -> APIRouter:
    """Return the routes of embeddings."""
    router = APIRouter()

    @router.post("/v1/embeddings", responses=replies(EmbeddingReply))
    async def create_embeddings(body: EmbeddingRequest) -> Response:
        """Return the embedding of each text."""
        return await _respond(models, body)

    return router


async def _respond(models: Models, body: EmbeddingRequest) -> Response:
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
