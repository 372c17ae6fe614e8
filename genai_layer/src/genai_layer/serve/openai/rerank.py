"""/v1/rerank: documents by their relevance to a query.

Source: docs/reference/openai.md#rerank.
"""

from __future__ import annotations

from fastapi import APIRouter, Response

from genai_layer.serve.engine.contract import Models
from genai_layer.serve.openai.counts import new_id
from genai_layer.serve.openai.schemas.errors import replies
from genai_layer.serve.openai.schemas.texts import (
    Rank,
    RankedDocument,
    RerankReply,
    RerankRequest,
    RerankUsage,
)


def rerank_router(models: Models) -> APIRouter:
    """Return the routes of ranking."""
    router = APIRouter()

    @router.post("/v1/rerank", responses=replies(RerankReply))
    async def rank_documents(body: RerankRequest) -> Response:
        """Return the documents, the most relevant first."""
        return await _respond(models, body)

    return router


async def _respond(models: Models, body: RerankRequest) -> Response:
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
