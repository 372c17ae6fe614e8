"""Bodies of /v1/chat/completions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from genai_layer.serve.openai.schemas.base import (
    MOST_ALTERNATIVES,
    Choosing,
    Effort,
    Inert,
    Reply,
    Tokens,
)
from genai_layer.serve.openai.schemas.formats import ChatFormat
from genai_layer.serve.openai.schemas.messages import Message, TemplateVariables
from genai_layer.serve.openai.schemas.tokens import ChoiceLogprobs, Usage
from genai_layer.serve.openai.schemas.tools import (
    AnyTool,
    CalledFunction,
    Choice,
    NamedTool,
    ToolCall,
)

Finish = Literal["stop", "length", "tool_calls"]
"""Reason for the end of a choice."""


class ChatRequest(Choosing):
    """Chat to continue."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: Tokens | None = None
    max_tokens: Tokens | None = None
    """The same under its deprecated name."""
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_ALTERNATIVES)] | None = None
    response_format: ChatFormat | None = None
    tools: Annotated[list[AnyTool], Field(max_length=128)] | None = None
    tool_choice: Choice | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: Effort | None = None
    chat_template_kwargs: TemplateVariables | None = None
    """vLLM's: variables of the chat template."""
    store: Literal[False] | None = None
    """Not supported: chats are not stored."""
    modalities: list[Literal["text"]] | None = None
    audio: None = None
    function_call: None = None
    functions: None = None
    moderation: None = None
    prediction: None = None
    verbosity: None = None
    web_search_options: None = None
    metadata: Inert = None
    prompt_cache_key: Inert = None
    prompt_cache_options: Inert = None
    prompt_cache_retention: Inert = None
    safety_identifier: Inert = None
    service_tier: Inert = None


class AnswerMessage(Reply):
    """Answer of the model."""

    role: Literal["assistant"]
    content: str | None
    refusal: None
    tool_calls: list[ToolCall] | None = None


class ChatChoice(Reply):
    """One of the answers."""

    index: int
    message: AnswerMessage
    logprobs: ChoiceLogprobs | None
    finish_reason: Finish


class ChatReply(Reply):
    """Answers to a chat."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChoice]
    usage: Usage


class CallDelta(Reply):
    """Complete call of a function, as a part of a streamed answer."""

    index: int
    id: str
    type: Literal["function"]
    function: CalledFunction


class AnswerDelta(Reply):
    """Part of a streamed answer; the parts of ``content`` follow each other."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    tool_calls: list[CallDelta] | None = None


class ChoiceDelta(Reply):
    """Part of one of the answers."""

    index: int
    delta: AnswerDelta
    logprobs: ChoiceLogprobs | None
    finish_reason: Finish | None
    """Set in the last part."""


class ChatChunk(Reply):
    """Event of a stream; the last one may have no choices, and the usage."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChoiceDelta]
    usage: Usage | None = None
