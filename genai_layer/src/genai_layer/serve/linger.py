"""Transport that closes in two steps if the client still sends, so that the answer arrives.

If a socket closes while bytes arrive that nobody has read, the kernel resets the connection, and
the client loses an answer that it has not read yet.

Source: RFC 9112, 9.6 (Tear-down).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, cast

from genai_layer.serve.limits import Limits

_BODIES = 16
"""Largest bodies that are read and dropped after an answer."""


def lingering(
    transport: asyncio.Transport, sends: Callable[[], bool], limits: Limits
) -> asyncio.Transport:
    """Return a transport whose ``close`` reads on for a while if the client sends.

    Args:
        transport: of a connection.
        sends: returns whether the client may be sending.
        limits: the number of bytes, and of seconds, until the connection is closed even if the
            client still sends.
    """
    return cast(asyncio.Transport, _Lingering(transport, sends, limits))


class _Lingering:
    """The transport; see ``lingering``."""

    def __init__(
        self, transport: asyncio.Transport, sends: Callable[[], bool], limits: Limits
    ) -> None:
        self._transport = transport
        self._sends, self._limits = sends, limits
        self._closing = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Return whether the transport is closing, in the first step or in the second."""
        return self._closing or self._transport.is_closing()

    def close(self) -> None:
        """Send the end of what was written; close, at once or after the client's end."""
        if self.is_closing():
            return
        self._closing = True
        if self._sends():
            _Dropping(self._transport).begin(self._limits)
        else:
            self._transport.close()


class _Dropping(asyncio.Protocol):
    """Protocol of a connection whose further bytes are dropped.

    Args:
        transport: of the connection, whose protocol learns of the end.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._before = transport.get_protocol()

    def begin(self, limits: Limits) -> None:
        """Send the end, and read until the client's end, or up to limits; then close."""
        self._left = _BODIES * limits.max_body
        self._transport.set_protocol(self)
        with contextlib.suppress(OSError):  # the client has reset it; reading reports that
            self._transport.write_eof()
        self._transport.resume_reading()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(limits.head_timeout, self._transport.close)

    def data_received(self, data: bytes) -> None:
        """Drop bytes, up to a number."""
        self._left -= len(data)
        if self._left < 0:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._timer.cancel()
        self._before.connection_lost(exc)
