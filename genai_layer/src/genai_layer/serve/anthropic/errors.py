"""Anthropic's form of errors, and of the API key.

Source: docs/reference/anthropic.md#errors.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from genai_layer.serve.anthropic.replies import ErrorDescription, MessageError
from genai_layer.serve.errors import BadRequest, ServeError, error_response
from genai_layer.serve.openai.schemas.errors import ERRORS, Replies

_log = logging.getLogger(__name__)

PATH = "/v1/messages"
"""Path of the routes whose errors have Anthropic's form."""

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
"""Anthropic's types of errors; others follow from the first digit of the status."""


_NO_THREADS = "thread_unsupported_request"


class ThreadUnsupported(BadRequest, code=_NO_THREADS):
    """The server stores no conversations; the client then sends all messages again."""


ANTHROPIC_ERRORS: Replies = {
    status: {**reply, "model": MessageError} for status, reply in ERRORS.items()
}
"""Errors of the routes, for the API description."""


def anthropic_error(status: int, message: str, code: str | None) -> MessageError:
    """Return an error in Anthropic's form; of the server's codes, clients know one."""
    other = "invalid_request_error" if status < 500 else "api_error"
    described = ErrorDescription(type=_TYPES.get(status, other), message=message)
    if code == _NO_THREADS:
        described.details = {"error_code": _NO_THREADS}
    return MessageError(type="error", error=described)


class AnthropicForm:
    """Middleware that reads the key in ``x-api-key``, and writes errors in Anthropic's form.

    Args:
        app: the application, which writes errors in OpenAI's form.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _with_bearer(scope)
        if scope["path"] == PATH or scope["path"].startswith(f"{PATH}/"):
            await self._convert(scope, receive, _Sender(send))
        else:
            await self._app(scope, receive, send)

    async def _convert(self, scope: Scope, receive: Receive, sender: _Sender) -> None:
        """Pass a request on, and report a defect of the server without its details."""
        try:
            await self._app(scope, receive, sender.send)
        except Exception as error:
            if sender.began:
                raise
            _log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            failed = ServeError("the server failed; its log has the reason")
            await error_response(failed)(scope, receive, sender.send)


def _with_bearer(scope: Scope) -> Scope:
    """Return a request whose key is in the header that the server reads."""
    headers = Headers(scope=scope)
    key = headers.get("x-api-key")
    if key is None or "authorization" in headers:
        return scope
    bearer = (b"authorization", b"Bearer " + key.encode("latin-1"))
    return {**scope, "headers": [*scope["headers"], bearer]}


class _Sender:
    """Sender of a response; an error is held back until it is complete.

    Args:
        send: of the connection.
    """

    def __init__(self, send: Send) -> None:
        self.began = False
        """True once the application has a response."""
        self._send = send
        self._start: Message | None = None
        """Start of an error."""
        self._body = b""

    async def send(self, message: Message) -> None:
        """Send a part of the response."""
        self.began = True
        if message["type"] == "http.response.start" and message["status"] >= 400:
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._end(self._start)

    async def _end(self, start: Message) -> None:
        body = _converted(start["status"], self._body)
        MutableHeaders(raw=start["headers"])["content-length"] = str(len(body))
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def _converted(status: int, body: bytes) -> bytes:
    """Return OpenAI's error JSON in Anthropic's form; other bodies stay."""
    try:
        found: Any = json.loads(body)
        message, code = found["error"]["message"], found["error"]["code"]
    except (ValueError, TypeError, KeyError):
        return body
    return anthropic_error(status, str(message), code).json_text().encode()
