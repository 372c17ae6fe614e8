"""Bodies of /v1/responses, and events of a streamed response.

Source: docs/reference/openai.md#responses.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from genai_layer.serve.openai.schemas.base import (
    MOST_ALTERNATIVES,
    Body,
    Effort,
    Inert,
    Metadata,
    Reply,
    Sampled,
    Tokens,
)
from genai_layer.serve.openai.schemas.formats import FlatFormat
from genai_layer.serve.openai.schemas.items import Input, OutputItem, OutputText
from genai_layer.serve.openai.schemas.tokens import ResponseUsage, TokenLogprob
from genai_layer.serve.openai.schemas.tools import AnyFlatTool, Choice, FlatNamedTool


class TextOptions(Body):
    """Options of the text."""

    format: FlatFormat | None = None
    verbosity: None = None


class Reasoning(Body):
    """Reasoning before the answer, which is a part of the text."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    """Without effect, as there is no item of reasoning to summarise."""


LOGPROBS = "message.output_text.logprobs"

Included = Literal[
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.results",
    "web_search_call.action.sources",
    "file_search_call.results",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "message.input_image.image_url",
]
"""Part of a response to include; all but the first are parts of items that no response has."""


class ResponseRequest(Sampled):
    """Input to answer; nothing is stored."""

    input: Input
    instructions: str | None = None
    """System message before the input."""
    max_output_tokens: Tokens | None = None
    text: TextOptions | None = None
    tools: Annotated[list[AnyFlatTool], Field(max_length=128)] | None = None
    tool_choice: Choice | FlatNamedTool | None = None
    parallel_tool_calls: bool | None = None
    include: Annotated[list[Included], Field(max_length=32)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_ALTERNATIVES)] | None = None
    metadata: Metadata | None = None
    store: Literal[False] | None = None
    """Not supported: responses are not stored."""
    truncation: Literal["disabled"] | None = None
    background: Literal[False] | None = None
    access_programs: None = None
    background_options: None = None
    context_management: None = None
    conversation: None = None
    image: None = None
    max_tool_calls: None = None
    moderation: None = None
    previous_response_id: None = None
    prompt: None = None
    reasoning: Reasoning | None = None
    prompt_cache_key: Inert = None
    prompt_cache_options: Inert = None
    prompt_cache_retention: Inert = None
    safety_identifier: Inert = None
    service_tier: Inert = None
    client_metadata: Inert = None
    """Codex's: ids of its session."""


class Incomplete(Reply):
    """Reason for an incomplete response."""

    reason: Literal["max_output_tokens"]


class ResponseError(Reply):
    """Reason for a failed response."""

    code: str
    message: str


class ResponseReply(Reply):
    """Response, complete or in progress; it repeats the request's parameters."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    error: ResponseError | None
    incomplete_details: Incomplete | None
    model: str
    output: list[OutputItem]
    usage: ResponseUsage | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    parallel_tool_calls: bool
    previous_response_id: None
    store: Literal[False]
    temperature: float
    text: dict[str, Any]
    tool_choice: str | dict[str, Any]
    tools: list[dict[str, Any]]
    """The functions that the model may call; tools of other types are left out."""
    top_logprobs: int
    top_p: float
    truncation: Literal["disabled"]


class Event(Reply):
    """Event; its type is also the type of the server-sent event."""

    type: str
    sequence_number: int = 0
    """Number among the events of the stream."""


class ResponseEvent(Event):
    """Change of the response's status."""

    response: ResponseReply


class ItemEvent(Event):
    """Begin or end of an item."""

    output_index: int
    item: OutputItem


class _PartOfItem(Event):
    item_id: str
    output_index: int


class _PartOfText(_PartOfItem):
    content_index: int


class PartEvent(_PartOfText):
    """Begin or end of a message's text."""

    part: OutputText


class TextDelta(_PartOfText):
    """Text that follows earlier text."""

    delta: str
    logprobs: list[TokenLogprob]


class TextDone(_PartOfText):
    """Complete text."""

    text: str
    logprobs: list[TokenLogprob]


class ArgumentsDelta(_PartOfItem):
    """Arguments of a call."""

    delta: str


class ArgumentsDone(_PartOfItem):
    """Complete arguments of a call."""

    name: str
    arguments: str


class ErrorEvent(Event):
    """Error that ends the stream."""

    message: str
    param: str | None
    code: str | None
