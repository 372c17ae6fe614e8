"""Data that the engine passes to the endpoints: parts of answers, embeddings, ranks, models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from genai_layer.results import GenerationFinishReason
from genai_layer.sampling.candidates import Alternatives

Kind = Literal["text", "embedding", "rerank", "speech"]
"""Kind of a model: a language model, a text embedding model, a reranker, a speech recogniser."""


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
    echoed: int = 0
    """Number of the first tokens that are the prompt's, as the parameters' echo requests."""


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


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Description of a model of the server."""

    name: str
    kind: Kind
    created: int
    """Time of the model's files, in Unix seconds."""
    loaded: bool
    max_model_len: int | None = None
    """Tokens of prompt and answer together; None if unlimited, or not known before the load."""
