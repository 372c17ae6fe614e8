"""Servers over sockets, without a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.responses import JSONResponse, StreamingResponse
from uvicorn.server import ServerState

from genai_layer.serve.connections import Connections, check_room
from genai_layer.serve.limits import Limits
from genai_layer.serve.middleware import Exchange

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
STREAM = b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    async def forever() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.sleep(60)

    if scope["path"] == "/stream":
        await StreamingResponse(forever())(scope, receive, send)
    elif scope["path"] == "/big":
        await JSONResponse({"text": "a" * (32 << 20)})(scope, receive, send)
    elif scope["path"] == "/early":  # as a preflight of CORS: before the body
        await JSONResponse({})(scope, receive, send)
    else:
        await JSONResponse({"path": scope["path"]})(scope, receive, send)


class Client:
    """Client of a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.message = ""
        """Message of the last error."""

    async def ask(self, data: bytes) -> tuple[int, Any]:
        """Return the status and the JSON of an answer; 0 if the connection ends before."""
        self.writer.write(data)
        return await self.answer()

    async def answer(self) -> tuple[int, Any]:
        """Return the status and the JSON of an answer; 0 if the connection ends before."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0, None
        status, fields = int(head.split()[1]), head.lower().decode()
        if "chunked" in fields:
            return status, None
        assert "content-type: application/json" in fields
        size = int(fields.partition("content-length: ")[2].split()[0])
        body = json.loads(await self.reader.readexactly(size))
        if status != 200:
            assert fields.count("connection: close") == 1
            assert await self.ended()
        error = body.get("error", {})
        self.message = error.get("message", "")
        return status, error.get("code")

    async def ended(self) -> bool:
        """Return whether the server has closed the connection, at its end."""
        return await self.reader.read() == b""


class Serving:
    """Server on a free port."""

    def __init__(self, port: int, state: ServerState) -> None:
        self.port, self.state = port, state
        self.clients: list[Client] = []

    async def client(self) -> Client:
        """Connect; the server has the connection on return."""
        self.clients.append(Client(*await asyncio.open_connection("127.0.0.1", self.port)))
        await asyncio.sleep(0.01)
        return self.clients[-1]


@asynccontextmanager
async def serving(wrapped: Any = None, **limits: Any) -> AsyncIterator[Serving]:
    bounds = Limits(**limits)
    admitted = Exchange(app, bounds, check_room, lambda _: None)
    connections = Connections(bounds)
    config = uvicorn.Config(
        wrapped or admitted, http=connections.protocol(), ws="none", log_config=None
    )
    config.load()
    state, loop = ServerState(), asyncio.get_running_loop()

    def connect() -> asyncio.Protocol:
        return config.http_protocol_class(
            config=config, server_state=state, app_state={}, _loop=loop
        )

    server = await loop.create_server(connect, "127.0.0.1", 0)
    made = Serving(server.sockets[0].getsockname()[1], state)
    try:
        yield made
    finally:
        for client in made.clients:
            client.writer.close()
        for connection in list(state.connections):
            connection.shutdown()
        for task in list(state.tasks):
            task.cancel()
        server.close()
        await asyncio.sleep(0)
