"""Access to the server: the names by which it is called, the pages that may call it, the key.

A browser lets pages of other origins send requests to this machine, and gives them the answers if
the page's own name resolves to this machine (DNS rebinding). So the server answers only to names
that are its own, and pages of other origins change nothing.

Source: RFC 9110, 15.5.20 (421); RFC 6454 (Origin).
"""

from __future__ import annotations

import secrets
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import Scope

from genai_layer.serve.errors import ForeignOrigin, Unauthorized, UnknownHost
from genai_layer.serve.hosts import Hosts

_SAFE = ("GET", "HEAD", "OPTIONS")
"""Methods of routes that change nothing."""


class Access:
    """Rules by which requests are admitted.

    Args:
        hosts: names of the server.
        origins: origins of other pages that may send requests; "*" for all.
        key: key that requests must have, compared in constant time; None for none.
    """

    def __init__(self, hosts: Hosts, origins: Collection[str] = (), key: str | None = None) -> None:
        self.origins = origins
        """Origins of other pages that may send requests."""
        self._hosts = hosts
        self._origins = {origin.lower() for origin in origins}
        self._key = None if key is None else key.encode()

    def check(self, scope: Scope) -> None:
        """Admit a request by its head, or reject it.

        Raises:
            UnknownHost: the header ``Host`` does not name the server. Requests of HTTP/1.0 may have
                none, as no browser sends them.
            ForeignOrigin: a page of another origin would change something.
            Unauthorized: the key is missing or wrong.
        """
        headers = Headers(scope=scope)
        host, origin = headers.get("host"), headers.get("origin")
        if host is not None and host not in self._hosts:
            raise UnknownHost(
                f"Host: {host!r} is no name of this server; use its address, or start the server "
                "with --allow-host NAME"
            )
        if scope["method"] not in _SAFE and not self._admits(origin, host):
            raise ForeignOrigin(
                f"Origin: {origin!r} is another origin than {host!r}; start the server with "
                "--cors-origin ORIGIN to let its pages send requests"
            )
        if not (_is_open(scope["path"]) or self._has_key(headers)):
            raise Unauthorized(
                "the API key is missing or wrong; send the header Authorization: Bearer KEY",
                headers={"WWW-Authenticate": "Bearer"},
            )

    def _admits(self, origin: str | None, host: str | None) -> bool:
        """Return whether pages of an origin may change something; tools send no origin."""
        if origin is None or not self._origins.isdisjoint({"*", origin.lower()}):
            return True
        scheme, _, place = origin.lower().partition("://")
        return host is not None and scheme in ("http", "https") and place == host.lower()

    def _has_key(self, headers: Headers) -> bool:
        if self._key is None:
            return True
        scheme, _, key = headers.get("authorization", "").partition(" ")
        right = secrets.compare_digest(key.strip().encode("latin-1"), self._key)
        return scheme.lower() == "bearer" and right


_OPEN = ("/", "/health", "/ready", "/page")
_OPEN_FOLDER = "/page/"


def _is_open(path: str) -> bool:
    """Return whether a path needs no key: health, and the files of the page."""
    return path in _OPEN or path.startswith(_OPEN_FOLDER)
