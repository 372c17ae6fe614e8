"""Messages of a chat."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from genai_layer.serve.openai.schemas.base import Body, Inert


class TextPart(Body):
    """Text as a part of a message; images, audio and files are not supported."""

    type: Literal["text"]
    text: str
    prompt_cache_breakpoint: Inert = None


Content = str | list[TextPart]


class InstructionMessage(Body):
    """Instructions for the whole chat."""

    role: Literal["system", "developer"]
    content: Content
    name: str | None = None


class UserMessage(Body):
    """Message of the user."""

    role: Literal["user"]
    content: Content
    name: str | None = None


class PastFunction(Body):
    """Name and arguments of an earlier call."""

    name: str
    arguments: str
    """JSON text of an object; without arguments, also "" or "null"."""


class PastCall(Body):
    """Earlier call of a function."""

    id: str
    type: Literal["function"]
    function: PastFunction


class AssistantMessage(Body):
    """Earlier answer of the model."""

    role: Literal["assistant"]
    content: Content | None = None
    name: str | None = None
    tool_calls: list[PastCall] | None = None
    refusal: None = None
    audio: None = None
    function_call: None = None
    annotations: Inert = None


class ToolMessage(Body):
    """Result of a call."""

    role: Literal["tool"]
    content: Content
    tool_call_id: str


Message = Annotated[
    InstructionMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]
