"""Bodies of replies, and events of a streamed message.

Source: docs/reference/anthropic.md.
"""

from __future__ import annotations

from typing import Any, Literal

from genai_layer.serve.openai.schemas.base import Reply


class TokenCount(Reply):
    """Tokens of a conversation."""

    input_tokens: int


class TokenUsage(Reply):
    """Counts of tokens; the three kinds of input tokens together are the prompt."""

    input_tokens: int
    """Tokens of the prompt that neither a slot nor the prefix cache had."""
    cache_creation_input_tokens: int
    """Always 0: the prefix cache does not count the tokens that it adds."""
    cache_read_input_tokens: int
    output_tokens: int
    """Generated tokens, stop tokens included."""


class AnswerText(Reply):
    """Text of an answer."""

    type: Literal["text"]
    text: str


class AnswerToolUse(Reply):
    """Call of a tool."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


AnswerBlock = AnswerText | AnswerToolUse
StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]


class MessageReply(Reply):
    """Answer to a conversation."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[AnswerBlock]
    stop_reason: StopReason | None
    stop_sequence: str | None
    """Stop sequence that ended the answer."""
    usage: TokenUsage


class MessageEvent(Reply):
    """Event of a stream; its type is also the type of the server-sent event."""

    type: Literal["ping", "message_stop"]


class MessageStart(Reply):
    """Message without content; the model has read the prompt."""

    type: Literal["message_start"]
    message: MessageReply


class _OfBlock(Reply):
    index: int


class BlockStart(_OfBlock):
    """Begin of a block, which is empty."""

    type: Literal["content_block_start"]
    content_block: AnswerBlock


class AddedText(Reply):
    """Text that follows earlier text."""

    type: Literal["text_delta"]
    text: str


class AddedInput(Reply):
    """JSON text of a call's arguments."""

    type: Literal["input_json_delta"]
    partial_json: str


class BlockDelta(_OfBlock):
    """Growth of a block."""

    type: Literal["content_block_delta"]
    delta: AddedText | AddedInput


class BlockStop(_OfBlock):
    """End of a block."""

    type: Literal["content_block_stop"]


class Ending(Reply):
    """Reason for the end."""

    stop_reason: StopReason | None
    stop_sequence: str | None


class MessageDelta(Reply):
    """End of the content."""

    type: Literal["message_delta"]
    delta: Ending
    usage: TokenUsage


StreamEvent = MessageEvent | MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta


class ErrorDescription(Reply):
    """Kind and text of an error."""

    type: str
    message: str
    """Object – problem – remedy."""
    details: dict[str, str] | None = None
    """Code of the error, if clients handle it."""


class MessageError(Reply):
    """Body of every reply that is an error."""

    type: Literal["error"]
    error: ErrorDescription
