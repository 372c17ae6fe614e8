"""Interface between the engine and the endpoints: models, and requests that run on them.

All methods are called in the event loop's thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from genai_layer.generation_config import GenerationConfig
from genai_layer.results import GenerationFinishReason
from genai_layer.sampling.candidates import Alternatives
from genai_layer.tokenizer import Tokenizer

Kind = Literal["text", "embedding", "rerank"]
"""Kind of a model: a language model, a text embedding model, or a reranker."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens and text that one step added to one sequence of a request."""

    index: int
    """Number of the sequence, from 0."""
    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    """Natural logarithm of each token's probability."""
    text: str
    """Complete characters; stop strings are removed, unless the parameters include them."""
    finish: GenerationFinishReason | None
    """Reason for the end, in the sequence's last chunk; else None."""
    alternatives: tuple[Alternatives, ...] = ()
    """Likeliest tokens at the place of each token, if the parameters' logprobs is above 1."""


class Running(Protocol):
    """Accepted request. Iterate over it once; cancel it in a ``finally``, whatever happens."""

    @property
    def prompt_tokens(self) -> int:
        """Number of tokens of the prompt."""
        ...

    @property
    def cached_tokens(self) -> int:
        """Number of the prompt's tokens that the prefix cache had; 0 if unknown."""
        ...

    def __aiter__(self) -> AsyncIterator[Chunk]:
        """Iterate over the chunks; several sequences arrive when all are complete.

        Raises:
            ServeError: the request timed out, its reader was too slow, or the server shuts down.
            GenAIError: the generation failed.
        """
        ...

    def cancel(self) -> None:
        """End the request before its next step; without effect if it has ended."""
        ...


class TextModel(Protocol):
    """Loaded language model."""

    @property
    def name(self) -> str:
        """Name by which clients request the model."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        ...

    @property
    def defaults(self) -> GenerationConfig:
        """Copy of the model's default parameters."""
        ...

    async def submit(
        self, prompt: str | list[int], config: GenerationConfig, request_id: str
    ) -> Running:
        """Add a request to the model's queue.

        Args:
            prompt: a text, which gets the tokenizer's special tokens but no chat template; or ids.
            config: parameters.
            request_id: name of the request in logs and observations.

        Raises:
            QueueFull: too many requests wait.
            ShuttingDown: the server is shutting down.
            TooLong: the prompt or the requested answer is too long.
            BadRequest: a limit of the server is exceeded.
            ConfigError, PromptError: see ``ContinuousBatchingPipeline.add_request``.
        """
        ...


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Embeddings of texts."""

    vectors: list[list[float]]
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks of documents."""

    scores: list[tuple[int, float]]
    """Number and score of each document, the best first."""
    prompt_tokens: int


class EmbeddingModel(Protocol):
    """Loaded text embedding model."""

    @property
    def name(self) -> str:
        """Name by which clients request the model."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return the embedding of each text, one text at a time on the device.

        Raises:
            QueueFull, ShuttingDown, TooLong, TimedOut: see ``TextModel`` and ``Running``.
            PromptError: a text has no tokens.
        """
        ...


class RerankModel(Protocol):
    """Loaded reranker."""

    @property
    def name(self) -> str:
        """Name by which clients request the model."""
        ...

    async def rerank(self, query: str, documents: Sequence[str]) -> Ranking:
        """Rank documents by their relevance to a query; errors as ``EmbeddingModel.embed``."""
        ...


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Description of a model of the server."""

    name: str
    kind: Kind
    created: int
    """Time of the model's files, in Unix seconds."""
    loaded: bool


class Models(Protocol):
    """Models of the server, which are loaded on demand.

    Its methods raise UnknownModel, WrongKind, NoRoom, Unusable and ShuttingDown.
    """

    def names(self) -> Sequence[ModelCard]:
        """Return the models, in the order of the command line."""
        ...

    async def text(self, name: str) -> TextModel:
        """Return a language model."""
        ...

    async def embedding(self, name: str) -> EmbeddingModel:
        """Return a text embedding model."""
        ...

    async def rerank(self, name: str) -> RerankModel:
        """Return a reranker."""
        ...
