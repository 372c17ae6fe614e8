"""Output of /v1/responses: a message, or calls of functions."""

from __future__ import annotations

from typing import Literal

from genai_layer.serve.openai.schemas.base import Reply
from genai_layer.serve.openai.schemas.logprobs import TokenLogprob

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
