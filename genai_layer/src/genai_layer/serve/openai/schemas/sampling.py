"""Parameters of sampling and of streaming that the endpoints of text share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from genai_layer.serve.openai.schemas.base import Body, Empty, Inert

MOST_CHOICES = 128
MOST_ALTERNATIVES = 20

_Penalty = Annotated[float, Field(ge=-2, le=2)]
_StopString = Annotated[str, Field(min_length=1)]

Tokens = Annotated[int, Field(ge=1, lt=1 << 31)]
"""Number of tokens, at least 1."""


class StreamOptions(Body):
    """Options of a stream."""

    include_usage: bool | None = None
    """End the stream with a chunk that has the usage."""
    include_obfuscation: Inert = None


class Sampled(Body):
    """Parameters of all endpoints of text; those that are missing are the model's defaults."""

    model: str
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """0 always chooses the likeliest token; the default is the model's."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: Inert = None


class Choosing(Sampled):
    """Parameters of chats and of completions."""

    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] | None = None
    """Seed of the draws; choice i draws with seed + i."""
    stop: _StopString | Annotated[list[_StopString], Field(max_length=4)] | None = None
    presence_penalty: _Penalty | None = None
    frequency_penalty: _Penalty | None = None
    logit_bias: Empty | None = None
