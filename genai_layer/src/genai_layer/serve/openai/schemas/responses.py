"""Bodies of /v1/responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from genai_layer.serve.openai.schemas.base import Body, Inert, Metadata, Reply
from genai_layer.serve.openai.schemas.formats import FlatFormat
from genai_layer.serve.openai.schemas.input_items import Input
from genai_layer.serve.openai.schemas.output_items import OutputItem
from genai_layer.serve.openai.schemas.sampling import MOST_ALTERNATIVES, Sampled, Tokens
from genai_layer.serve.openai.schemas.tools import Choice, FlatNamedTool, FlatTool
from genai_layer.serve.openai.schemas.usage import ResponseUsage


class TextOptions(Body):
    """Options of the text."""

    format: FlatFormat | None = None
    verbosity: None = None


class ResponseRequest(Sampled):
    """Input to answer; nothing is stored."""

    input: Input
    instructions: str | None = None
    """System message before the input."""
    max_output_tokens: Tokens | None = None
    text: TextOptions | None = None
    tools: Annotated[list[FlatTool], Field(max_length=128)] | None = None
    tool_choice: Choice | FlatNamedTool | None = None
    parallel_tool_calls: bool | None = None
    include: list[Literal["message.output_text.logprobs"]] | None = None
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
    reasoning: None = None
    prompt_cache_key: Inert = None
    prompt_cache_options: Inert = None
    prompt_cache_retention: Inert = None
    safety_identifier: Inert = None
    service_tier: Inert = None


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
    top_logprobs: int
    top_p: float
    truncation: Literal["disabled"]
