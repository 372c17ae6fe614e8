"""Input and output of /v1/responses: messages, calls of functions, and their results.

Items of an earlier response may be returned as they are.
"""

from __future__ import annotations

from typing import Annotated, Literal, cast

from pydantic import Discriminator, Field, Tag

from genai_layer.serve.openai.schemas.base import Body, Inert, Reply
from genai_layer.serve.openai.schemas.tokens import TokenLogprob


class InputText(Body):
    """Text as a part of a message; images, audio and files are not supported."""

    type: Literal["input_text", "output_text"]
    text: str
    annotations: Inert = None
    logprobs: Inert = None
    parsed: Inert = None
    prompt_cache_breakpoint: Inert = None


InputContent = str | list[InputText]


class InputMessage(Body):
    """Message; the type may be missing."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: InputContent
    id: Inert = None
    status: Inert = None
    phase: Inert = None


class InputCall(Body):
    """Earlier call of a function."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    """JSON text of an object; without arguments, also "" or "null"."""
    id: Inert = None
    status: Inert = None
    caller: Inert = None
    namespace: Inert = None
    parsed_arguments: Inert = None


class InputResult(Body):
    """Result of a call."""

    type: Literal["function_call_output"]
    call_id: str
    output: InputContent
    id: Inert = None
    status: Inert = None


def _type_of(item: object) -> object:
    """Return the type of an item; the default is a message."""
    if isinstance(item, dict):
        return cast(dict[str, object], item).get("type", "message")
    return getattr(item, "type", "")


InputItem = Annotated[
    Annotated[InputMessage, Tag("message")]
    | Annotated[InputCall, Tag("function_call")]
    | Annotated[InputResult, Tag("function_call_output")],
    Discriminator(_type_of),
]

Input = str | Annotated[list[InputItem], Field(min_length=1)]


ItemStatus = Literal["in_progress", "completed", "incomplete"]


class OutputText(Reply):
    """Text of a message."""

    type: Literal["output_text"]
    text: str
    annotations: list[None]
    """Always empty."""
    logprobs: list[TokenLogprob]


class OutputMessage(Reply):
    """Message of the model."""

    type: Literal["message"]
    id: str
    role: Literal["assistant"]
    status: ItemStatus
    content: list[OutputText]


class OutputCall(Reply):
    """Call of a function."""

    type: Literal["function_call"]
    id: str
    call_id: str
    name: str
    arguments: str
    status: ItemStatus


OutputItem = OutputMessage | OutputCall
