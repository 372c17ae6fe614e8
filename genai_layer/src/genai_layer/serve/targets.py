"""Targets of requests: those with the host in front, which proxies' clients send, as others.

Source: RFC 9112, 3.2.2 (absolute-form): the host of such a target replaces the header ``Host``.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

_ABSOLUTE = re.compile(rb"http://([^/]*)(.*)", re.DOTALL | re.IGNORECASE)


class OriginForm:
    """Middleware that gives a request with an absolute target its path, and the host it names.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        await self._app(_origin_form(scope), receive, send)


def _origin_form(scope: Scope) -> Scope:
    target = _ABSOLUTE.fullmatch(scope.get("raw_path") or b"")
    if target is None:
        return scope
    host, path = target[1], target[2] or b"/"
    headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
    return {
        **scope,
        "path": unquote(path.decode("ascii")),
        "raw_path": path,
        "headers": [(b"host", host), *headers],
    }
