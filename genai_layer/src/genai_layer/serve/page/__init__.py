"""The page of ``npu-serve``: a chat, and live pictures of the device that answers.

The page is static: HTML, CSS and ES modules in ``static/``, without a build step. Its requests go
to this server only, and its Content-Security-Policy admits nothing else: a model's answers are
untrusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

STATIC = Path(__file__).parent / "static"

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

_POLICY = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types dompurify",
        )
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page, in memory."""

    content: bytes
    media_type: str
    etag: str

    def response(self, known: str | None) -> Response:
        """Return the file, or 304 without content if a browser knows it already.

        Args:
            known: the request's ``If-None-Match``.
        """
        headers = {**_POLICY, "ETag": self.etag, "Cache-Control": "no-cache"}
        if known is not None and self.etag in known:
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.media_type, headers=headers)


def router() -> APIRouter:
    """Return the routes of the page, which are not in the OpenAPI description."""
    assets = _read_assets()
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def index(request: Request) -> Response:
        return assets["index.html"].response(request.headers.get("if-none-match"))

    @routes.get("/page")
    def folder() -> Response:
        return RedirectResponse("./")  # relative: whatever host and path a proxy has

    @routes.get("/page/{name:path}")
    def asset(name: str, request: Request) -> Response:
        found = assets.get(name)
        if found is None:
            raise HTTPException(404)
        return found.response(request.headers.get("if-none-match"))

    return routes


def _read_assets() -> dict[str, Asset]:
    """Return the files of ``static/`` by their paths in it."""
    return {
        path.relative_to(STATIC).as_posix(): _read_asset(path)
        for path in sorted(STATIC.rglob("*"))
        if path.is_file()
    }


def _read_asset(path: Path) -> Asset:
    content = path.read_bytes()
    media_type = _TYPES.get(path.suffix, "text/plain; charset=utf-8")
    return Asset(content, media_type, f'"{sha256(content).hexdigest()[:32]}"')
