"""Bodies of /v1/completions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from genai_layer.serve.openai.schemas.base import (
    MOST_ALTERNATIVES,
    Choosing,
    Reply,
    TokenId,
    Tokens,
)
from genai_layer.serve.openai.schemas.tokens import CompletionLogprobs, Usage

_Ids = Annotated[list[TokenId], Field(min_length=1)]


class CompletionRequest(Choosing):
    """Prompts to continue."""

    prompt: (
        str
        | Annotated[list[str], Field(min_length=1)]
        | _Ids
        | Annotated[list[_Ids], Field(min_length=1)]
    )
    """Texts, or ids of tokens; no chat template is applied."""
    max_tokens: Tokens | None = None
    """16 by default."""
    logprobs: Annotated[int, Field(ge=0, le=MOST_ALTERNATIVES)] | None = None
    """Number of likeliest tokens at each place; 0 for the chosen tokens alone."""
    echo: bool | None = None
    """Begin each text with its prompt; not together with logprobs."""
    best_of: None = None
    suffix: None = None


class CompletionChoice(Reply):
    """One of the texts: prompt p and choice c of n have the index p × n + c."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: Literal["stop", "length"] | None
    """Set in the last part of a stream."""


class CompletionReply(Reply):
    """Texts after prompts; also the event of a stream."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[CompletionChoice]
    usage: Usage | None = None
