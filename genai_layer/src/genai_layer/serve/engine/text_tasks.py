"""Loaded models that compute one input at a time on the device; of texts: embeddings and ranks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from genai_layer.errors import PromptTooLong
from genai_layer.serve.engine.activity import Commons
from genai_layer.serve.engine.contract import Embeddings, Ranking
from genai_layer.serve.engine.times import CompletionRate, RequestTimes, check_queue
from genai_layer.serve.errors import TooLong
from genai_layer.texts.embedding import TextEmbeddingPipeline
from genai_layer.texts.rerank import TextRerankPipeline

S = TypeVar("S")
T = TypeVar("T")


class Tasks:
    """Queue of a model that reads one input after the other.

    Args:
        name: name by which clients request the model.
        commons: parts of the server that all models share.
    """

    def __init__(self, name: str, commons: Commons) -> None:
        self.name = name
        self._commons = commons
        self._device = asyncio.Lock()
        self._rate = CompletionRate()
        self._unfinished = 0

    @property
    def queue(self) -> int:
        """Number of requests that wait."""
        return max(self._unfinished - 1, 0)

    @property
    def running(self) -> int:
        """Number of requests that are computed: 0 or 1."""
        return min(self._unfinished, 1)

    @property
    def idle(self) -> bool:
        """True if no request waits or runs."""
        return not self._unfinished

    async def _each(
        self, inputs: Sequence[S], compute: Callable[[S], tuple[T, int]]
    ) -> tuple[list[T], int]:
        """Return the results of all inputs, and their number of tokens.

        Args:
            inputs: e.g. texts.
            compute: returns the result of one input and its tokens.

        Raises:
            ShuttingDown, QueueFull, TimedOut: see ``ServedTextModel`` and ``RunningRequest``.
            TooLong: an input is too long.
        """
        activity, limits = self._commons.activity, self._commons.limits
        activity.check()
        check_queue(self.name, self.queue, limits.queue, self._rate)
        client = asyncio.Event()
        work = asyncio.ensure_future(self._compute(inputs, compute, client))
        self._unfinished += 1
        work.add_done_callback(self._note_end)
        try:
            return await activity.wait(work, limits.timeout)
        except PromptTooLong as error:
            raise TooLong(str(error)) from error
        finally:
            client.set()  # a client that leaves ends the work after the current input

    async def _compute(
        self, inputs: Sequence[S], compute: Callable[[S], tuple[T, int]], left: asyncio.Event
    ) -> tuple[list[T], int]:
        arrived, results, tokens = time.monotonic(), list[T](), 0
        for one in inputs:
            async with self._device:  # requests take turns, input by input
                if left.is_set():
                    break
                result, count = await asyncio.to_thread(compute, one)
            results.append(result)
            tokens += count
        times = RequestTimes(self._commons.metrics, self.name, tokens, arrived)
        times.note_end("abort" if left.is_set() else "stop", 0)
        self._commons.metrics.prompt_tokens.labels(self.name).inc(tokens)
        self._rate.note()
        return results, tokens

    def _note_end(self, _: asyncio.Future[tuple[list[T], int]]) -> None:
        self._unfinished -= 1


class ServedEmbeddingModel(Tasks):
    """Text embedding model of a server.

    Args:
        name: see ``Tasks``.
        pipeline: the model, which nobody else uses.
        commons: see ``Tasks``.
    """

    def __init__(self, name: str, pipeline: TextEmbeddingPipeline, commons: Commons) -> None:
        super().__init__(name, commons)
        self._pipeline = pipeline

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return the embedding of each text, one text at a time on the device.

        Raises:
            QueueFull, ShuttingDown, TooLong, TimedOut: see ``Tasks``.
            PromptError: a text has no tokens.
        """

        def compute(text: str) -> tuple[list[float], int]:
            (vector,) = self._pipeline.embed_documents([text])
            return vector, self._pipeline.read_tokens

        return Embeddings(*await self._each(texts, compute))


class ServedRerankModel(Tasks):
    """Reranker of a server; arguments as above."""

    def __init__(self, name: str, pipeline: TextRerankPipeline, commons: Commons) -> None:
        super().__init__(name, commons)
        self._pipeline = pipeline

    async def rerank(self, query: str, documents: Sequence[str]) -> Ranking:
        """Rank documents by their relevance to a query; errors as ``embed``."""

        def compute(document: str) -> tuple[float, int]:
            ((_, score),) = self._pipeline.rerank(query, [document])
            return score, self._pipeline.read_tokens

        scores, tokens = await self._each(documents, compute)
        ranks = sorted(enumerate(scores), key=lambda rank: -rank[1])
        return Ranking(ranks, tokens)
