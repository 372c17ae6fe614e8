"""Server that notes requests, and answers them by rule."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from client_requests.replies import REPLIES, Reply

HEADERS = ("accept", "content-type", "user-agent", "x-request-id", "openai-beta", "anthropic-")
"""Begins of the names of headers that are noted: none is a secret, or describes the machine."""


class RecordingServer:
    """Server on a free port of the loopback address; use it as a context.

    Args:
        replies: replies by path, beside those of ``client_requests.replies``.
    """

    def __init__(self, replies: Mapping[str, Reply]) -> None:
        self.requests: list[dict[str, Any]] = []
        """Requests so far: method, path, headers and body."""
        handler = type(
            "Handler", (_Handler,), {"requests": self.requests, "replies": {**REPLIES, **replies}}
        )
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    @property
    def base_url(self) -> str:
        """Address of /v1."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    requests: list[dict[str, Any]]
    replies: Mapping[str, Reply]

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = _content(raw, self.headers.get("content-type", ""))
        headers = {
            name.lower(): value
            for name, value in self.headers.items()
            if name.lower().startswith(HEADERS)
        }
        path = self.path.partition("?")[0]
        self.requests.append(
            {"method": self.command, "path": self.path, "headers": headers, **body}
        )
        given = body.get("body")
        data, kind = self.replies[path](given if isinstance(given, dict) else {})
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _content(raw: bytes, kind: str) -> dict[str, Any]:
    """Return the body: JSON, or the base64 text of bytes."""
    if not raw or kind.startswith("application/json"):
        return {"body": json.loads(raw) if raw else None}
    return {"body_base64": base64.b64encode(raw).decode()}
