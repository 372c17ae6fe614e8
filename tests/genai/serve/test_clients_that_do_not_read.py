"""Clients that do not take their answers: they lose the connection, and the work for them ends."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from tests.genai.serve.conftest import run
from tests.genai.serve.sockets import CHUNKED, HEALTH, Serving, serving

TIMEOUT = 0.4
FLOOD = b"GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n"
endings: list[str] = []


async def flood(scope: Any, receive: Any, send: Any) -> None:
    """Stream events without an end; note how the work ends."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    left = asyncio.ensure_future(receive())
    part = {"type": "http.response.body", "body": b"data: x\n\n" * 4000, "more_body": True}
    try:
        while not left.done() or left.result()["type"] != "http.disconnect":
            left = asyncio.ensure_future(receive()) if left.done() else left
            await send(part)
            await asyncio.sleep(0.001)
        endings.append("left")
    finally:
        left.cancel()


def connected(server: Serving) -> socket.socket:
    """Return a socket with small buffers."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    one.connect(("127.0.0.1", server.port))
    one.setblocking(False)
    return one


async def closed(server: Serving) -> None:
    """Wait until the server has no connection, and no work for one."""
    async with asyncio.timeout(10):
        while server.state.connections or server.state.tasks:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    "data",
    [
        FLOOD,
        HEALTH * 2000,
        HEALTH.replace(b"health", b"big"),
        HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n").replace(b"health", b"big"),
        CHUNKED.replace(b" /", b" /big") + b"no chunk\r\n",
    ],
    ids=["stream", "pipelined", "answer", "last answer", "error in the body"],
)
def test_a_client_that_does_not_read_loses_the_connection(data: bytes) -> None:
    async def hold() -> None:
        wrapped = flood if data is FLOOD else None
        async with serving(wrapped, write_timeout=TIMEOUT, head_timeout=TIMEOUT) as server:
            with connected(server) as client:
                loop = asyncio.get_running_loop()
                sending = asyncio.ensure_future(loop.sock_sendall(client, data))
                await asyncio.sleep(0.2)
                assert server.state.connections
                await closed(server)
                sending.cancel()

    endings.clear()
    run(hold())
    assert endings == (["left"] if data is FLOOD else [])


def test_a_slow_reader_keeps_the_connection() -> None:
    async def read() -> None:
        async with serving(flood, write_timeout=TIMEOUT) as server:
            with connected(server) as client:
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(client, FLOOD)
                for _ in range(12):
                    await asyncio.sleep(TIMEOUT / 4)
                    assert await loop.sock_recv(client, 100_000)
                assert server.state.connections

    run(read())
