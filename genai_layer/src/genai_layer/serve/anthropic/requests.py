"""Bodies of requests to /v1/messages and /v1/messages/count_tokens.

A field of type None is one of Anthropic's that the server does not support: any value but null is
rejected by name. A field of type Inert is accepted without effect.

Source: docs/reference/anthropic.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from genai_layer.serve.openai.schemas.base import (
    Body,
    Inert,
    JsonObject,
    Stops,
    Temperature,
    Tokens,
)
from genai_layer.serve.openai.schemas.tools import Function, NamedFunction

_Hidden = Annotated[Inert, Field(exclude=True)]
"""Value without effect that chat templates do not see."""
_ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]


class TextBlock(Body):
    """Text of a message."""

    type: Literal["text"]
    text: str
    cache_control: Inert = None
    citations: Inert = None


TextContent = str | list[TextBlock]


class ToolUseBlock(Body):
    """Earlier call of a tool."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: JsonObject
    cache_control: Inert = None
    caller: Inert = None
    toolset_name: None = None


class ToolResultBlock(Body):
    """Result of a call; images and documents are not supported."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: TextContent | None = None
    is_error: Inert = None
    """Without effect: the content describes the error."""
    cache_control: Inert = None
    toolset_name: None = None


class ThinkingBlock(Body):
    """Earlier reasoning, which the model does not read again."""

    type: Literal["thinking"]
    thinking: Inert
    signature: Inert = None


class RedactedThinkingBlock(Body):
    """Earlier reasoning that only Anthropic can read."""

    type: Literal["redacted_thinking"]
    data: Inert


UserBlock = Annotated[TextBlock | ToolResultBlock, Field(discriminator="type")]
AssistantBlock = Annotated[
    TextBlock | ToolUseBlock | ThinkingBlock | RedactedThinkingBlock, Field(discriminator="type")
]


class UserTurn(Body):
    """Message of the user, and results of tools."""

    role: Literal["user"]
    content: str | list[UserBlock]


class AssistantTurn(Body):
    """Earlier answer of the model."""

    role: Literal["assistant"]
    content: str | list[AssistantBlock]


class SystemTurn(Body):
    """Instructions from here on."""

    role: Literal["system"]
    content: TextContent


InputTurn = Annotated[UserTurn | AssistantTurn | SystemTurn, Field(discriminator="role")]


class ClientTool(Function):
    """Tool that the client runs; those that Anthropic defines are not supported."""

    name: _ToolName
    parameters: JsonObject | None = Field(default=None, alias="input_schema")
    type: Literal["custom"] | None = None
    allowed_callers: Annotated[list[Literal["direct"]] | None, Field(exclude=True)] = None
    cache_control: _Hidden = None
    defer_loading: Annotated[Literal[False] | None, Field(exclude=True)] = None
    eager_input_streaming: _Hidden = None
    input_examples: _Hidden = None


class _Parallel(Body):
    disable_parallel_tool_use: bool | None = None


class AnyToolChoice(_Parallel):
    """No call; a call or text, as the model decides; or a call of any tool."""

    type: Literal["none", "auto", "any"]


class OneToolChoice(_Parallel, NamedFunction):
    """Call of one tool."""

    type: Literal["tool"]
    name: _ToolName


ToolChoice = Annotated[AnyToolChoice | OneToolChoice, Field(discriminator="type")]


class OutputSchema(Body):
    """JSON of a schema."""

    type: Literal["json_schema"]
    json_schema: JsonObject = Field(alias="schema")


class OutputConfig(Body):
    """Form of the answer's text."""

    format: OutputSchema | None = None
    effort: Inert = None


class ClearThinking(Body):
    """Removal of earlier reasoning, which the model never reads again here."""

    type: Literal["clear_thinking_20251015"]
    keep: Inert = None


class ContextManagement(Body):
    """Edits of earlier messages."""

    edits: list[ClearThinking] | None = None


class ConversationRequest(Body):
    """Conversation whose tokens are counted."""

    model: str
    messages: Annotated[list[InputTurn], Field(min_length=1)]
    system: TextContent | None = None
    tools: Annotated[list[ClientTool], Field(max_length=128)] | None = None
    tool_choice: ToolChoice | None = None
    output_config: OutputConfig | None = None
    context_management: ContextManagement | None = None
    mcp_servers: None = None
    cache_control: Inert = None
    speed: Inert = None
    thinking: Inert = None
    """Without effect: reasoning is a part of the text."""


class MessageRequest(ConversationRequest):
    """Conversation to continue."""

    max_tokens: Tokens
    temperature: Annotated[Temperature, Field(le=1)] | None = None
    """0 always chooses the likeliest token; the default is the model's."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Tokens | None = None
    stop_sequences: Stops | None = None
    stream: bool | None = None
    thread: Inert = None
    """Not supported: conversations are not stored. The client handles the error."""
    container: None = None
    diagnostics: Inert = None
    inference_geo: Inert = None
    metadata: Inert = None
    service_tier: Inert = None
