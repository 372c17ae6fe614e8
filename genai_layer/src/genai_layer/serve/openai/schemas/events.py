"""Events of a streamed response.

Source: docs/reference/openai.md#responses.
"""

from __future__ import annotations

from genai_layer.serve.openai.schemas.base import Reply
from genai_layer.serve.openai.schemas.logprobs import TokenLogprob
from genai_layer.serve.openai.schemas.output_items import OutputItem, OutputText
from genai_layer.serve.openai.schemas.responses import ResponseReply


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
