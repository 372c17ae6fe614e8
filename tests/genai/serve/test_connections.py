"""Connections over sockets: their number, heads and bodies that do not arrive, errors as JSON."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from starlette.responses import JSONResponse, StreamingResponse
from tests.genai.serve.conftest import run
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
        return status, body.get("error", {}).get("code")

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


@pytest.mark.parametrize(
    ("begin", "answer"),
    [
        (b"", (0, None)),
        (b"GET /health", (408, "head_timeout")),
        (b"GET /health HTTP/1.1\r\nHost: loc", (408, "head_timeout")),
        (HEALTH, (0, None)),  # and then nothing
        (HEALTH + b"GET /he", (408, "head_timeout")),
        (POST + b"{", (408, "body_timeout")),
        (CHUNKED, (408, "body_timeout")),
        (CHUNKED + b"5\r\nab", (408, "body_timeout")),
    ],
    ids=repr,
)
def test_a_request_that_does_not_arrive_ends_the_connection(begin: bytes, answer: Any) -> None:
    async def wait() -> None:
        async with serving(head_timeout=0.3, body_timeout=0.3) as server:
            client = await server.client()
            client.writer.write(begin)
            if begin.startswith(HEALTH):
                assert await client.answer() == (200, None)
            assert await client.answer() == answer

    run(wait())


@pytest.mark.parametrize(
    "begin",
    [b"GET /health HTTP/1.1\r\nA: ", HEALTH + b"GET /", POST, POST.replace(b" /", b" /early")],
    ids=repr,
)
def test_bytes_one_at_a_time_win_no_time(begin: bytes) -> None:
    async def drip() -> None:
        async with serving(head_timeout=0.1, body_timeout=0.1) as server:
            client = await server.client()
            client.writer.write(begin.replace(b"Length: 9", b"Length: 999999"))
            ending = asyncio.ensure_future(client.reader.read())
            async with asyncio.timeout(2):
                while not ending.done():
                    client.writer.write(b"a")
                    await asyncio.sleep(0.01)

    run(drip())


def test_a_new_connection_replaces_the_one_that_waits_longest() -> None:
    async def replace() -> None:
        async with serving(connections=3) as server:
            used, idle, body = [await server.client() for _ in range(3)]
            body.writer.write(POST + b"{")
            assert await used.ask(HEALTH) == (200, None)  # waits again, but not as long
            first = await server.client()
            assert await idle.ended()
            second = await server.client()
            assert await body.answer() == (503, "too_many_connections")
            third = await server.client()
            assert await used.ended()
            for client in (first, second, third):
                assert await client.ask(HEALTH) == (200, None)

    run(replace())


def test_a_client_that_does_not_read_is_replaced_as_well() -> None:
    async def fill() -> None:
        async with serving(connections=1) as server:
            client = await server.client()
            client.writer.write(STREAM.replace(b"stream", b"big"))
            while not client.reader._buffer:
                await asyncio.sleep(0.01)
            assert await (await server.client()).ask(HEALTH) == (200, None)
            assert len(server.state.connections) == 1

    run(fill())


def test_beyond_the_bound_only_health_is_answered() -> None:
    async def surplus() -> None:
        async with serving(connections=2) as server:
            for client in [await server.client() for _ in range(2)]:
                assert (await client.ask(STREAM))[0] == 200
            for _ in range(3):
                client = await server.client()
                assert await client.ask(HEALTH) == (200, None)
                client = await server.client()
                assert await client.ask(POST + b"123456789") == (503, "too_many_connections")
            held = [await server.client() for _ in range(20)]
            assert [await one.ended() for one in held[:-1]] == [True] * 19
            assert await held[-1].ask(HEALTH) == (200, None)

    run(surplus())


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # without a host
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/9\r\nHost: a\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
        CHUNKED + b"x\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 70_000,
        HEALTH + b"nonsense\r\n\r\n",
    ],
    ids=lambda data: repr(data[:50]),
)
def test_bytes_that_are_no_http_get_json(data: bytes) -> None:
    async def ask() -> None:
        async with serving() as server:
            client = await server.client()
            client.writer.write(data)
            if data.startswith(HEALTH):
                assert await client.answer() == (200, None)
            assert await client.answer() == (400, "malformed_http")

    run(ask())


def test_errors_during_a_response_end_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def break_off() -> None:
        answering = asyncio.Event()

        async def early(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            answering.set()
            await receive()
            while (await receive())["type"] != "http.disconnect":
                pass

        async with serving(early) as server:
            client = await server.client()
            client.writer.write(CHUNKED)
            await answering.wait()
            client.writer.write(b"no chunk\r\n")
            assert (await client.reader.read()).endswith(b"x\r\n")

    with caplog.at_level(logging.ERROR):
        run(break_off())
    assert caplog.text == ""
