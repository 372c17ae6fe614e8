"""Log-probabilities of an answer's tokens, and counts of a request's tokens."""

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
    token_logprobs: list[float | None]
    """null for the first token of a prompt, which nothing predicts."""
    top_logprobs: list[dict[str, float] | None]
    """Likeliest tokens at each place, and the one there."""
    text_offset: list[int]
    """Place of the first character that the token may have added to."""


class PromptDetails(Reply):
    """Origin of a prompt's tokens."""

    cached_tokens: int
    """Tokens that a slot or the prefix cache had."""


class Usage(Reply):
    """Counts of tokens, of all choices together."""

    prompt_tokens: int
    completion_tokens: int
    """Generated tokens, stop tokens included."""
    total_tokens: int
    prompt_tokens_details: PromptDetails


class EmbeddingUsage(Reply):
    """Counts of tokens without an answer."""

    prompt_tokens: int
    total_tokens: int


class InputDetails(PromptDetails):
    """Origin of the input's tokens, in a response."""

    cache_write_tokens: int
    """Always 0: the prefix cache does not count the tokens that it adds."""


class OutputDetails(Reply):
    """Kinds of an output's tokens, in a response."""

    reasoning_tokens: int
    """Always 0: reasoning is a part of the text."""


class ResponseUsage(Reply):
    """Counts of tokens, in a response."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int
