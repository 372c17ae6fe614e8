"""Ends of a real server: by a signal, in the grace time, by a second signal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from typing import Any

import pytest
from tests.stack.serve.conftest import Serve, Start

LONG = "What is an NPU?"
"""Prompt without template, whose answer repeats a word for ever."""


async def begin(client: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Begin a stream of 500 tokens, and return it after its first event."""
    reader, writer = await client.open(client.body(LONG, stream=True))
    while not (await reader.readline()).startswith(b"data:"):
        pass
    return reader, writer


def get(server: Any, path: str) -> int:
    """Return the status of a page."""
    try:
        server.get(path)
    except OSError as error:
        return getattr(error, "code", 0)
    return 200


def test_requests_in_progress_finish_and_new_ones_are_refused(
    serve_demo: Serve, serve_load: Any
) -> None:
    async def shut_down(server: Any) -> bytes:
        client = serve_load.Client(server.port, "demo", 500)
        reader, writer = await begin(client)
        server.process.send_signal(signal.SIGTERM)
        while await asyncio.to_thread(get, server, "/ready") != 503:
            await asyncio.sleep(0.01)
        assert await asyncio.to_thread(get, server, "/health") == 200
        status, body = await client.post(client.body("Hello!"))
        assert (status, json.loads(body)["error"]["code"]) == (503, "shutting_down")
        rest = await reader.read()
        writer.close()
        return rest

    with serve_demo() as server:
        rest = asyncio.run(shut_down(server))
        assert rest.rstrip().endswith(b"data: [DONE]")
        assert b'"finish_reason":"length"' in rest
        assert server.process.wait(30) == 0


def test_requests_end_properly_after_the_grace_time(serve_demo: Serve, serve_load: Any) -> None:
    async def shut_down(server: Any) -> bytes:
        reader, writer = await begin(serve_load.Client(server.port, "demo", 500))
        server.process.send_signal(signal.SIGINT)
        rest = await reader.read()
        writer.close()
        return rest

    with serve_demo("--grace", "0.1") as server:
        rest = asyncio.run(shut_down(server))
        (line,) = [one for one in rest.splitlines() if b'"error"' in one]
        assert json.loads(line.removeprefix(b"data: "))["error"]["code"] == "shutting_down"
        assert server.process.wait(30) == 0


def test_a_second_signal_ends_at_once(serve_demo: Serve, serve_load: Any) -> None:
    async def shut_down(server: Any) -> None:
        _, writer = await begin(serve_load.Client(server.port, "demo", 500))
        server.process.send_signal(signal.SIGTERM)
        while await asyncio.to_thread(get, server, "/ready") != 503:
            await asyncio.sleep(0.01)
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(server.process.wait, 5) == 128 + signal.SIGTERM
        writer.close()

    with serve_demo() as server:
        asyncio.run(shut_down(server))


def filled_pipe() -> tuple[int, int]:
    """Return the ends of a pipe that takes no byte more."""
    output, pipe = os.pipe()
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, bytes(1 << 12))
    os.set_blocking(pipe, True)
    return output, pipe


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("reader", "path"), [("head -1", "/health"), ("gone", "/ready"), ("stopped", "/ready")]
)
def test_no_reader_of_the_output_decides_whether_the_server_stops(
    start_demo: Start, reader: str, path: str
) -> None:
    output, pipe = filled_pipe() if reader == "stopped" else os.pipe()
    if reader == "gone":
        os.close(output)
    with start_demo(path, pipe) as server:
        os.close(pipe)
        if reader == "head -1":
            assert os.read(output, 1 << 12).endswith(b"loading demo\n")
            os.close(output)
        server.wait_until_ready()
        assert server.stop(signal.SIGTERM) == 0
    if reader == "stopped":
        os.close(output)
