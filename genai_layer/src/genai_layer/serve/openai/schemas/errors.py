"""OpenAI's error JSON, and the statuses of the endpoints, for the API description."""

from __future__ import annotations

from typing import Any

from genai_layer.serve.openai.schemas.base import Reply


class ErrorFields(Reply):
    """Description of an error."""

    message: str
    """Object – problem – remedy."""
    type: str
    param: str | None
    """Field of the request that is wrong."""
    code: str | None


class ErrorReply(Reply):
    """Body of every reply that is an error."""

    error: ErrorFields


_STATUSES = {
    400: "A field is missing, wrong or not supported; or the prompt is too long",
    401: "The API key is missing or wrong",
    403: "A page of another origin sends the request",
    404: "The server has no model of this name",
    408: "The body did not arrive in time",
    413: "The body is too large",
    421: "The header Host is no name of the server",
    429: "Too many requests wait; Retry-After has the seconds to wait",
    500: "The runtime failed",
    503: "The server is shutting down or has no room, or the model cannot be loaded",
    504: "The request exceeded its time limit",
}

Replies = dict[int | str, dict[str, Any]]
"""Replies of an endpoint by status, as FastAPI describes them."""

ERRORS: Replies = {
    status: {"model": ErrorReply, "description": text} for status, text in _STATUSES.items()
}
"""Errors of an endpoint that runs a model."""

ERRORS_OF_LISTS: Replies = {status: ERRORS[status] for status in (401, 404, 421, 503)}
"""Errors of an endpoint that describes models."""


_EVENT = {
    "type": "object",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
}
"""Event of a stream; its data are JSON, but for [DONE]."""


def replies(body: type[Reply], streams: bool = False) -> Replies:
    """Return the replies of an endpoint that runs a model.

    Args:
        body: the reply that succeeds.
        streams: whether it may also be a stream of events.
    """
    done: dict[str, Any] = {"model": body}
    if streams:
        done["content"] = {"text/event-stream": {"itemSchema": _EVENT}}
    return {200: done, **ERRORS}
