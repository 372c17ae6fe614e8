"""Types that the bodies of requests and replies share.

Parameters of sampling and of streaming are those that the endpoints of text share.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError

_MAX_DEPTH = 64
"""Levels of a JSON value; each level costs frames of the interpreter's stack."""

_SURROGATE = re.compile("[\ud800-\udfff]")

NO_TEXT = "string_unicode"
"""pydantic's type of the error of a text with a lone surrogate, which no UTF-8 can carry."""


def _stop_at_first_errors(part: Any) -> None:
    """Change the lists in a part of a schema; each error would cost more memory than its item."""
    if isinstance(part, dict):
        schema = cast(dict[str, Any], part)
        if schema.get("type") == "list":
            schema["fail_fast"] = True
        part = list(schema.values())
    if isinstance(part, list | tuple):
        for inner in cast(Sequence[Any], part):
            _stop_at_first_errors(inner)


class Body(BaseModel):
    """Body of a request: unknown fields, other types and lone surrogates are rejected."""

    # pydantic looks at the characters of texts that have a bound; this one admits all lengths.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, str_min_length=0)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[BaseModel], handler: GetCoreSchemaHandler, /
    ) -> CoreSchema:
        """Return the schema, whose lists are rejected at their first wrong item."""
        schema = handler(source)
        _stop_at_first_errors(schema)
        return schema


class Reply(BaseModel):
    """Body of a reply; fields that are not set are left out."""

    def json_text(self) -> str:
        """Return the JSON, on one line."""
        return self.model_dump_json(exclude_unset=True, by_alias=True)


def bounded(value: Any) -> Any:
    """Return a JSON value of bounded depth whose texts are characters.

    Raises:
        PydanticCustomError: the value has too many levels, or a lone surrogate.
    """
    level = [value]
    for _ in range(_MAX_DEPTH):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, str) and _SURROGATE.search(one):
                raise PydanticCustomError(NO_TEXT, "has a lone surrogate; remove it")
            if isinstance(one, dict):
                inner += cast(dict[str, Any], one)
                inner += cast(dict[str, Any], one).values()
            elif isinstance(one, list):
                inner += cast(list[Any], one)
        if not inner:
            return value
        level = inner
    raise PydanticCustomError("depth", "must have at most {most} levels", {"most": _MAX_DEPTH})


def _sized(factor: float) -> float:
    """Return a factor above 0 that is not 0 in f32, the type of the logits.

    Raises:
        PydanticCustomError: the factor is 0 in f32.
    """
    if not np.float32(factor):
        raise PydanticCustomError("small", "is 0 in f32; send 1 for no penalty")
    return factor


def _sharp(temperature: float) -> float:
    """Return a temperature that is 0, or not 0 in f32, the type of the draws.

    Raises:
        PydanticCustomError: the temperature is 0 in f32 alone.
    """
    if temperature and not np.float32(temperature):
        raise PydanticCustomError("small", "is 0 in f32; send 0 for the likeliest token")
    return temperature


JsonObject = Annotated[dict[str, Any], AfterValidator(bounded)]
"""JSON object of bounded depth, e.g. a JSON schema."""

Inert = Annotated[Any, AfterValidator(bounded)]
"""Value of one of OpenAI's fields that has no effect here."""

Temperature = Annotated[float, Field(ge=0, le=2), AfterValidator(_sharp)]

Metadata = Annotated[dict[str, str], Field(max_length=16)]
"""Texts by name, which a client attaches to a request."""

TokenId = Annotated[int, Field(ge=0, lt=1 << 31)]


MOST_CHOICES = 128
MOST_ALTERNATIVES = 20
MOST_STOPS = 256
MOST_BIASES = 1024

_Penalty = Annotated[float, Field(ge=-2, le=2)]
_Factor = Annotated[float, Field(gt=0, le=float(np.finfo(np.float32).max)), AfterValidator(_sized)]
StopString = Annotated[str, Field(min_length=1)]
Stops = Annotated[list[StopString], Field(max_length=MOST_STOPS)]
"""Texts of which each ends an answer."""
_IdText = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,9})$")]
_Bias = Annotated[float, Field(ge=-100, le=100)]

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""Effort of reasoning, which a chat template may read."""

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
    temperature: Temperature | None = None
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
    stop: StopString | Stops | None = None
    presence_penalty: _Penalty | None = None
    frequency_penalty: _Penalty | None = None
    logit_bias: Annotated[dict[_IdText, _Bias], Field(max_length=MOST_BIASES)] | None = None
    """Numbers to add to the logits of ids."""
    top_k: Annotated[int, Field(ge=-1, lt=1 << 31)] | None = None
    """vLLM's: number of likeliest tokens to draw from; 0 and -1 for all."""
    min_p: Annotated[float, Field(ge=0, lt=1)] | None = None
    """vLLM's: least share of the highest probability."""
    repetition_penalty: _Factor | None = None
    """vLLM's: divides the logits of tokens of prompt and answer."""
    ignore_eos: bool | None = None
    """vLLM's: the model's stop tokens do not end an answer."""
