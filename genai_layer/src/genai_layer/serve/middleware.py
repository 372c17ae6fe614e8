"""Middleware: the admission of requests, their bounds, and clients that leave.

The body of each request is read before the application runs, up to a number of bytes and of
seconds; that of a rejected one, too, as clients read the answer after they have sent the body. If
the client disconnects, the application is cancelled, whether it streams or computes. If the server
ends, the response ends first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from genai_layer.serve.errors import (
    BodyTimeout,
    ServeError,
    TooLarge,
    error_response,
    shutting_down,
)
from genai_layer.serve.limits import Limits

CLOSE = {"Connection": "close"}
"""Header for responses after which the rest of a body is not read."""


class Exchange:
    """Middleware that admits requests, bounds bodies and notices clients that leave.

    Args:
        app: the application. Requests of HEAD reach it as those of GET.
        limits: limits of a request.
        admit: raises the error of a request that is rejected by its head.
        answered: called with the status of each response.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        admit: Callable[[Scope], None],
        answered: Callable[[int], None],
    ) -> None:
        self._app = app
        self._limits = limits
        self._admit = admit
        self._answered = answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or reject it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._answered(message["status"])
            await send(message)

        try:
            body = await self._admitted(scope, receive)
        except ServeError as error:
            await error_response(error)(scope, receive, counted)
            return
        if body is not None:
            head = scope["method"] == "HEAD"
            client = _Client(body, receive, counted, head)
            await _run(self._app, {**scope, "method": "GET"} if head else scope, client)

    async def _admitted(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the body of an admitted request; None if the client disconnected.

        Raises:
            ServeError: the request is rejected; its body was read and dropped.
        """
        try:
            self._admit(scope)
        except ServeError:
            if await self._body(scope, receive, keep=False) is None:
                return None
            raise
        return await self._body(scope, receive)

    async def _body(self, scope: Scope, receive: Receive, keep: bool = True) -> bytes | None:
        """Return the body; None if the client disconnected.

        Raises:
            TooLarge: the body has too many bytes.
            BodyTimeout: the body did not arrive in time.
            ShuttingDown: the server ended before.
        """
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal():
            self._check(int(length))
        body, size = bytearray(), 0
        try:
            async with asyncio.timeout(self._limits.body_timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    part = message.get("body", b"")
                    size += len(part)
                    self._check(size)
                    if keep:
                        body += part
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise BodyTimeout(
                f"the body did not arrive within {self._limits.body_timeout:g} s; send it faster",
                headers=CLOSE,
            ) from None
        except asyncio.CancelledError:
            raise shutting_down() from None

    def _check(self, size: int) -> None:
        if size > self._limits.max_body:
            raise TooLarge(
                f"the body has {size} bytes or more, and the limit is {self._limits.max_body}; "
                "send less, or raise --max-body",
                headers=CLOSE,
            )


class _Client:
    """Client of a request whose body was read.

    Args:
        body: the body.
        receive: of the connection, after the body.
        send: of the connection.
        head: whether the response ends with its head.
    """

    def __init__(self, body: bytes, receive: Receive, send: Send, head: bool) -> None:
        self._body: bytes | None = body
        self._receive, self._send = receive, send
        self._head = head
        self._began = self._answered = False
        self.left = asyncio.Event()
        """Set when the client disconnects before the response is complete."""

    async def receive(self) -> Message:
        """Return the body, then wait for the client to disconnect."""
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send a part of the response."""
        if self._head and message["type"] == "http.response.body":
            if self._answered:
                await asyncio.sleep(0)  # a stream that never waits is cancelled here
                return
            message = {"type": "http.response.body", "body": b""}
            self.left.set()  # the rest of a stream has no reader
        await self._send(message)
        self._began = True
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._answered = True

    async def close(self, scope: Scope) -> None:
        """End the response, because the server ends."""
        if not self._began:
            await error_response(shutting_down())(scope, self.receive, self.send)
        elif not self._answered:
            await self.send({"type": "http.response.body", "body": b""})

    async def watch(self) -> None:
        """Wait for the client to disconnect."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._answered:  # else the connection reports the end of the response
            self.left.set()


async def _run(app: ASGIApp, scope: Scope, client: _Client) -> None:
    """Run the application on a request, until it ends or the client disconnects."""
    watching = asyncio.ensure_future(client.watch())
    running = asyncio.ensure_future(_call(app, scope, client))
    try:
        await asyncio.wait({watching, running}, return_when=asyncio.FIRST_COMPLETED)
        if not client.left.is_set():
            await asyncio.wait({running})
    except asyncio.CancelledError:
        await client.close(scope)
    finally:
        watching.cancel()
        running.cancel()
        await asyncio.wait({running})  # the connection may be used again afterwards
    if not running.cancelled():
        running.result()


async def _call(app: ASGIApp, scope: Scope, client: _Client) -> None:
    await app(scope, client.receive, client.send)
