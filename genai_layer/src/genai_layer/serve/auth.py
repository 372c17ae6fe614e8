"""API key: who may use the server."""

from __future__ import annotations

import secrets

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from genai_layer.serve.errors import Unauthorized, error_response

_OPEN = ("/", "/health", "/ready")
_OPEN_FOLDER = "/page/"
_SCHEME = "bearer"


class ApiKey:
    """Middleware that rejects requests without the key; health and the page's files need none.

    Args:
        app: the application.
        key: the key; compared in constant time.
    """

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or reject it with 401."""
        if scope["type"] != "http" or _is_open(scope["path"]) or self._has_key(scope):
            await self._app(scope, receive, send)
            return
        error = Unauthorized(
            "the API key is missing or wrong; send the header Authorization: Bearer KEY",
            headers={"WWW-Authenticate": "Bearer"},
        )
        await error_response(error)(scope, receive, send)

    def _has_key(self, scope: Scope) -> bool:
        scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
        right = secrets.compare_digest(key.strip().encode("latin-1"), self._key)
        return scheme.lower() == _SCHEME and right


def _is_open(path: str) -> bool:
    return path in _OPEN or path.startswith(_OPEN_FOLDER)
