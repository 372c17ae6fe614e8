"""Messages of a chat, and further variables of its template."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from genai_layer.serve.openai.schemas.base import Body, Inert, JsonObject


class TextPart(Body):
    """Text as a part of a message; images, audio and files are not supported."""

    type: Literal["text"]
    text: str
    prompt_cache_breakpoint: Inert = None
    cache_control: Inert = None
    """Anthropic's, which LiteLLM passes on."""


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
    parsed_arguments: Inert = None
    """Arguments as OpenAI's client parsed them."""


class PastCall(Body):
    """Earlier call of a function."""

    id: str
    type: Literal["function"]
    function: PastFunction
    index: Inert = None
    """Place of the call in the stream that OpenAI's client collected."""


class AssistantMessage(Body):
    """Earlier answer of the model."""

    role: Literal["assistant"]
    content: Content | None = None
    name: str | None = None
    reasoning_content: str | None = None
    """Reasoning before the answer, for templates that show it."""
    tool_calls: list[PastCall] | None = None
    refusal: None = None
    audio: None = None
    function_call: None = None
    annotations: Inert = None
    parsed: Inert = None
    """Content as OpenAI's client parsed it."""
    provider_specific_fields: Inert = None
    """LiteLLM's."""
    thinking_blocks: Inert = None
    """LiteLLM's, beside ``reasoning_content``."""


class ToolMessage(Body):
    """Result of a call."""

    role: Literal["tool"]
    content: Content
    tool_call_id: str
    name: str | None = None
    """Name of the function, for templates that show it."""


Message = Annotated[
    InstructionMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]

_TAKEN = {"messages", "tools", "add_generation_prompt", "chat_template", "tokenize"}
"""Variables and parameters of templates that a request sets by other fields, or not at all."""


def _free(variables: dict[str, Any]) -> dict[str, Any]:
    """Return variables that no other field sets.

    Raises:
        PydanticCustomError: there are others.
    """
    if taken := sorted(variables.keys() & _TAKEN):
        raise PydanticCustomError("taken", "must not have {taken}", {"taken": ", ".join(taken)})
    return variables


TemplateVariables = Annotated[JsonObject, AfterValidator(_free)]
"""Variables of a chat template."""
