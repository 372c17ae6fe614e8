"""Connections: a bound of their number, times for a head and for readers, errors as JSON.

uvicorn bounds the requests in progress, but neither connections that send none, nor the time of a
head, nor the time in which a client takes what is sent, and answers with plain text. A connection
waits while its request is not complete. If too many are open, a new one replaces the one that has
waited longest; if none waits, the first request of the new one gets 503, unless it is for the
server's health, and the connection ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from functools import partial
from http import HTTPStatus
from typing import Any, cast

import h11
from starlette.types import Scope
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

from genai_layer.serve.errors import (
    BadHttp,
    ConnectionsFull,
    HeadTimeout,
    ServeError,
    error_response,
)
from genai_layer.serve.limits import Limits
from genai_layer.serve.linger import lingering
from genai_layer.serve.middleware import CLOSE

_log = logging.getLogger(__name__)

_MOST_HEAD = 1 << 16
"""Bytes of a head that has not ended."""

HEALTH = "/health"
"""Path that every connection may request."""

_SURPLUS = "npu_serve.surplus"
"""Entry of the ASGI state of connections beyond the bound."""

_TURNS = 3
"""Turns of the event loop in which a new connection is watched, found ready and read."""

_NO_HTTP = "the request is no HTTP/1.1: {}; send HTTP/1.1"
_MALFORMED = {
    "Receive buffer too long": "the head of the request, or of a chunk of its body, has more than "
    f"{_MOST_HEAD} bytes; send fewer or shorter header fields",
    "Missing mandatory Host: header": "Host: the header is missing; send the server's name",
    "Found multiple Host: headers": "Host: the header is given twice; send one",
    "conflicting Content-Length headers": "Content-Length: two lengths are given; send one",
    "bad Content-Length": "Content-Length: the value is no length; send a number of bytes",
    "multiple Transfer-Encoding headers": "Transfer-Encoding: the header is given twice; send one",
    "Only Transfer-Encoding: chunked is supported": "Transfer-Encoding: the coding is not "
    "supported; send chunked, or a Content-Length",
}
"""Texts of errors by h11's reason; other reasons are quoted."""


def check_room(scope: Scope) -> None:
    """Reject requests of a connection beyond the bound.

    Raises:
        ConnectionsFull: the connection is one, and does not ask for the server's health.
    """
    if scope.get("state", {}).get(_SURPLUS) and scope["path"] != HEALTH:
        raise _full()


def _full() -> ConnectionsFull:
    return ConnectionsFull(
        "the server has no room for a further connection; try again later, or raise "
        "--max-connections",
        headers={"Retry-After": "1", **CLOSE},
    )


class Connections:
    """Open connections of a server.

    Args:
        limits: bounds of their number, and of the times of a head and of a reader.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        """Bounds of the connections."""
        self._open: dict[Connection, None] = {}
        """Open connections; the one that has waited longest is first among those that wait."""

    @property
    def _full(self) -> bool:
        return len(self._open) > self.limits.connections

    def protocol(self) -> type[asyncio.Protocol]:
        """Return the protocol, as ``uvicorn.Config`` takes it."""
        return cast("type[asyncio.Protocol]", partial(Connection, opened=self))

    def enter(self, one: Connection) -> bool:
        """Add a connection; return whether there is room for it.

        If there is none, the connections that have waited longest are closed.
        """
        self._open[one] = None
        if not self._full:
            return True
        _log.warning(
            "more than %d connections: those that wait longest are closed, others get 503",
            self.limits.connections,
        )
        for other in [*self._open]:
            if other.waits and other.was_read:
                self.leave(other)
                other.make_room()
                if not self._full:
                    break
        return not self._full

    def wait(self, one: Connection) -> None:
        """Note that a connection begins to wait for its next request."""
        if one in self._open:
            self.leave(one)
            self._open[one] = None

    def leave(self, one: Connection) -> None:
        """Remove a connection."""
        self._open.pop(one, None)


class Connection(H11Protocol):
    """Connection of HTTP/1.1.

    Args:
        opened: the server's connections.
        values: see ``H11Protocol``.
    """

    def __init__(self, *, opened: Connections, **values: Any) -> None:
        super().__init__(**values)
        self.conn = h11.Connection(h11.SERVER, _MOST_HEAD)
        self._opened = opened
        self.was_read = False
        """True once the event loop has had turns to read what arrived with the connection."""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """True if the server waits for the rest of a request, for the next one, or for the end."""
        return self.transport.is_closing() or self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    @property
    def _sends(self) -> bool:
        """True if the client may be sending: a request is not complete, or another one follows."""
        unread, _ = self.conn.trailing_data
        return bool(unread) or self.conn.their_state in (h11.SEND_BODY, h11.ERROR)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        _abort_unread(transport, self._opened.limits.write_timeout)
        super().connection_made(lingering(transport, lambda: self._sends, self._opened.limits))
        if not self._opened.enter(self):
            self.app_state = {**self.app_state, _SURPLUS: True}
        self._read_within(_TURNS)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._opened.leave(self)
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Read requests; the time of a head ends with it.

        A surplus connection ends with an answer.
        """
        super().handle_events()
        if self.cycle and self.app_state.get(_SURPLUS):
            self.headers.append(CLOSE_HEADER)  # as if the client had sent it
        if self.conn.our_state in (h11.SEND_RESPONSE, h11.SEND_BODY):
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, which may have arrived."""
        self._opened.wait(self)
        self._wait_for_head()
        super().on_response_complete()

    def shutdown(self) -> None:
        """End the connection after its response, unless it is ending already."""
        if not self.transport.is_closing():
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Reject bytes that are no HTTP, by the reason that h11 raised."""
        reason = str(sys.exc_info()[1] or msg)
        self.refuse(BadHttp(_MALFORMED.get(reason, _NO_HTTP.format(reason)), headers=CLOSE))

    def refuse(self, error: ServeError) -> None:
        """Close the connection, after an answer if the client has sent something."""
        self._stop_waiting()
        asked = self.conn.their_state is not h11.IDLE or self.conn.trailing_data[0]
        if asked:
            with contextlib.suppress(h11.LocalProtocolError):  # a response has begun
                for event in _events(error):
                    self.transport.write(self.conn.send(event) or b"")
        self._leave_cycle()
        self.transport.close()

    def make_room(self) -> None:
        """Close the connection at once, even if the client does not read."""
        self.refuse(_full())
        self.transport.abort()

    def _read_within(self, turns: int) -> None:
        """Set ``was_read`` after some turns of the event loop."""
        if turns:
            self.loop.call_soon(self._read_within, turns - 1)
        else:
            self.was_read = True

    def _leave_cycle(self) -> None:
        """Report the client's end to the application, before the connection's."""
        if self.cycle:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self.flow.resume_writing()

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(self._opened.limits.head_timeout, self._give_up)

    def _give_up(self) -> None:
        seconds = self._opened.limits.head_timeout
        text = f"the head of the request did not arrive within {seconds:g} s; send it faster"
        self.refuse(HeadTimeout(text, headers=CLOSE))

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _abort_unread(transport: asyncio.Transport, seconds: float) -> None:
    """Let the kernel abort a connection whose client does not take what was sent in time.

    Source: tcp(7), TCP_USER_TIMEOUT; other systems than Linux have none.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        one: socket.socket = transport.get_extra_info("socket")
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


def _events(error: ServeError) -> list[h11.Event]:
    """Return the events of a response that ends the connection."""
    response = error_response(error)
    reason = HTTPStatus(error.status).phrase.encode()
    head = h11.Response(status_code=error.status, headers=response.raw_headers, reason=reason)
    return [head, h11.Data(data=bytes(response.body)), h11.EndOfMessage()]
