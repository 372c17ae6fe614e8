"""Streams of server-sent events."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from genai_layer.errors import GenAIError
from genai_layer.serve.errors import ServeError, as_serve_error
from genai_layer.serve.openai.schemas.base import Reply

REPLY_ID = "x-reply-id"
"""Header of a stream: the id of the reply, which its events have from the first token on."""

DONE = "data: [DONE]\n\n"
"""End of a stream of chats or completions."""

_log = logging.getLogger(__name__)


def event(body: Reply, name: str = "") -> str:
    """Return the text of an event.

    Args:
        body: its data.
        name: its type, if the stream has types.
    """
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {body.json_text()}\n\n"


def error_event(error: Exception) -> str:
    """Return the event of an error, in OpenAI's form."""
    return f"data: {json.dumps(reported(error).body())}\n\n"


def reported(error: Exception) -> ServeError:
    """Return the error that a stream reports; a defect is reported without its details."""
    if isinstance(error, GenAIError):
        return as_serve_error(error)
    _log.error("a stream failed", exc_info=error)
    return ServeError("the server failed; its log has the reason")


class EventStream(StreamingResponse):
    """Stream of events.

    Args:
        events: texts of the events.
        release: called at the end, even if no event was sent.
        reply_id: id of the reply, by which observations name the request.
    """

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncGenerator[str], release: Callable[[], None], reply_id: str
    ) -> None:
        super().__init__(events, headers={"Cache-Control": "no-store", REPLY_ID: reply_id})
        self._events = events
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()
            await self._events.aclose()
