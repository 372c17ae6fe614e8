"""Requests of embeddings take turns, text by text."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from tests.genai.serve.conftest import run

from genai_layer.serve.engine.activity import Activity, Commons
from genai_layer.serve.engine.text_tasks import ServedEmbeddingModel
from genai_layer.serve.limits import Limits
from genai_layer.serve.metrics import Metrics
from genai_layer.texts.embedding import TextEmbeddingPipeline


class Recording:
    """Pipeline that records the texts it reads."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.read_tokens = 1

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return [[0.0] for _ in texts]


def test_a_short_request_does_not_wait_for_all_texts_of_a_long_one() -> None:
    async def ask() -> list[str]:
        pipeline: Any = Recording()
        commons = Commons(Limits(), Metrics(), Activity())
        model = ServedEmbeddingModel("toy", cast(TextEmbeddingPipeline, pipeline), commons)
        await asyncio.gather(model.embed(["a", "b", "c", "d"]), model.embed(["short"]))
        return pipeline.texts

    assert run(ask()) == ["a", "short", "b", "c", "d"]
