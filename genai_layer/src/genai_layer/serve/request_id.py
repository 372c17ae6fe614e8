"""Middleware: ids of requests, by which a client and the server's log name the same request.

Source: docs/reference/openai.md#fields-of-vllm.
"""

from __future__ import annotations

import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "x-request-id"
_FIT = re.compile(r"[!-~]{1,128}")
"""Id of a client that is taken over: short, and visible in a log."""


class RequestId:
    """Middleware that gives each response the id of its request, or a new one.

    The id is also ``request.state.request_id``.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        name = given if _FIT.fullmatch(given) else secrets.token_hex(16)
        scope.setdefault("state", {})["request_id"] = name

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = name
            await send(message)

        await self._app(scope, receive, named)
