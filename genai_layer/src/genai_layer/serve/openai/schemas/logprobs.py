"""Log-probabilities of an answer's tokens."""

from __future__ import annotations

from pydantic import Field

from genai_layer.serve.openai.schemas.base import Reply


class Alternative(Reply):
    """Token that could stand at a place, with its log-probability."""

    token: str
    """Text of the token alone; bytes that are no complete character are replaced."""
    logprob: float
    bytes: list[int]


class TokenLogprob(Alternative):
    """Chosen token, and the likeliest ones at its place."""

    top_logprobs: list[Alternative]


class ChoiceLogprobs(Reply):
    """Log-probabilities in a chat."""

    content: list[TokenLogprob]
    refusal: None = Field(default=None)


class CompletionLogprobs(Reply):
    """Log-probabilities in a completion, place by place."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]
    """Place of the first character that the token may have added to."""
