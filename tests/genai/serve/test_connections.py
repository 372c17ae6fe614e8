"""Connections over sockets: their number, heads and bodies that do not arrive, errors as JSON."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from typing import Any

import pytest
from tests.genai.serve.conftest import run
from tests.genai.serve.sockets import CHUNKED, HEALTH, POST, STREAM, app, serving

from genai_layer.serve.connections import check_room
from genai_layer.serve.limits import Limits
from genai_layer.serve.middleware import Exchange
from genai_layer.serve.targets import OriginForm


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


def test_a_request_that_has_arrived_is_answered_in_a_flood() -> None:
    """Many connections are accepted before the first one's bytes are read."""

    async def flood() -> None:
        async with serving(connections=20) as server:
            for client in [await server.client() for _ in range(20)]:
                assert (await client.ask(STREAM))[0] == 200
            for one in _asked(server.port, 10, HEALTH):
                assert await asyncio.to_thread(_answers, one) == 1

    run(flood())


@pytest.mark.parametrize("target", [b"/health", b"http://localhost/health"])
def test_beyond_the_bound_a_connection_ends_after_an_answer(target: bytes) -> None:
    requests = HEALTH.replace(b"/health", target) * 50

    async def flood() -> None:
        wrapped = OriginForm(Exchange(app, Limits(), check_room, lambda _: None))
        async with serving(wrapped, connections=20) as server:
            for client in [await server.client() for _ in range(20)]:
                assert (await client.ask(STREAM))[0] == 200
            asked = _asked(server.port, 60, requests)
            answers = await asyncio.gather(*[asyncio.to_thread(_answers, one) for one in asked])
            assert answers == [1] * 60

    run(flood())


def _asked(port: int, count: int, data: bytes) -> list[socket.socket]:
    """Return new connections that have sent bytes before the server reads any."""
    opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    for one in opened:
        one.sendall(data)
    return opened


def _answers(one: socket.socket) -> int:
    """Return the number of answers until the server ends the connection."""
    with one, one.makefile("rb") as file, contextlib.suppress(ConnectionError):
        return file.read().count(b"HTTP/1.1 200")
    return 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x16\x03\x01\x02\x00\r\n\r\n", "the request is no HTTP/1.1: illegal request line"),
        (b"GET / HTTP/1.1\r\n\r\n", "Host: the header is missing"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "Host: the header is given twice"),
        (b"GET / HTTP/9\r\nHost: a\r\n\r\n", "the request is no HTTP/1.1: illegal request line"),
        (b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", "the request is no HTTP/1.1: illegal request"),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nA\r\n\r\n",
            "the request is no HTTP/1.1: illegal header line",
        ),
        (POST.replace(b"9", b"-1"), "Content-Length: the value is no length"),
        (POST.replace(b"9", b"9" * 21), "Content-Length: the value is no length"),
        (POST.replace(b"9", b"1\r\nContent-Length: 2"), "Content-Length: two lengths are given"),
        (POST.replace(b"9", b"1, 2"), "Content-Length: two lengths are given"),
        (CHUNKED.replace(b"chunked", b"gzip"), "Transfer-Encoding: the coding is not supported"),
        (
            CHUNKED.replace(b"chunked", b"chunked\r\nTransfer-Encoding: chunked"),
            "Transfer-Encoding: the header is given twice",
        ),
        (CHUNKED + b"x\r\n", "the request is no HTTP/1.1: illegal chunk header"),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 70_000,
            "the head of the request, or of a chunk",
        ),
        (HEALTH + b"nonsense\r\n\r\n", "the request is no HTTP/1.1: illegal request line"),
    ],
    ids=lambda data: repr(data[:50]),
)
def test_bytes_that_are_no_http_get_json(data: bytes, message: str) -> None:
    async def ask() -> None:
        async with serving() as server:
            client = await server.client()
            client.writer.write(data)
            if data.startswith(HEALTH):
                assert await client.answer() == (200, None)
            assert await client.answer() == (400, "malformed_http")
            assert client.message.startswith(message)
            assert "; send " in client.message

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
