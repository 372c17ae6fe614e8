"""Answers to clients that still send: they arrive, whichever client, up to a bound."""

from __future__ import annotations

import asyncio
import http.client
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing

import httpx2
import pytest
from tests.genai.serve.conftest import run
from tests.genai.serve.sockets import CHUNKED, HEALTH, Serving, serving

LIMIT = 1 << 20


def parts(size: int) -> Iterator[bytes]:
    for begin in range(0, size, 1 << 16):
        yield bytes(min(1 << 16, size - begin))


def by_http_client(port: int, size: int, length: dict[str, str]) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as client:
        client.request("POST", "/", parts(size), length, encode_chunked=not length)
        return client.getresponse().status


def by_httpx(port: int, size: int, length: dict[str, str]) -> int:
    return httpx2.post(f"http://127.0.0.1:{port}/", content=parts(size), headers=length).status_code


def by_curl(port: int, size: int, length: dict[str, str]) -> int:
    head = length or {"Transfer-Encoding": "chunked"}
    fields = [word for name in head for word in ("-H", f"{name}: {head[name]}")]
    url = f"http://127.0.0.1:{port}/"
    command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Expect:", *fields]
    done = subprocess.run([*command, "--data-binary", "@-", url], input=bytes(size), stdout=-1)
    if not int(done.stdout):
        raise ConnectionError(f"curl ended with {done.returncode}")
    return int(done.stdout)


CLIENTS = [by_http_client, by_httpx, by_curl]


async def idle(server: Serving) -> None:
    """Wait until the server has no connection."""
    async with asyncio.timeout(5):
        while server.state.connections:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("times", [1.1, 10, 1000])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_body_that_is_too_large_gets_413(
    client: Callable[[int, int, dict[str, str]], int], times: float
) -> None:
    if client is by_curl and (times == 1000 or shutil.which("curl") is None):
        pytest.skip("curl is not installed, or keeps the whole body in memory")
    size = int(times * LIMIT)

    async def send() -> None:
        async with serving(max_body=LIMIT) as server:
            for length in ({"Content-Length": str(size)}, {}):
                for _ in range(3):
                    try:
                        asking = asyncio.to_thread(client, server.port, size, length)
                        assert await asking == 413
                    except (ConnectionError, httpx2.TransportError):
                        assert times == 1000  # beyond the bound of what is read and dropped
                    await idle(server)

    run(send())


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nA: ",
        b"POST / HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n",
        CHUNKED + b"no chunk\r\n",
        HEALTH + b"nonsense\r\n\r\n",
    ],
    ids=repr,
)
def test_bytes_that_are_no_http_get_their_answer(data: bytes) -> None:
    def ask(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(data + b"a" * 3_000_000)
            client.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: client.recv(1 << 16), b""))

    async def send() -> None:
        async with serving(max_body=LIMIT) as server:
            for _ in range(5):
                assert b"malformed_http" in await asyncio.to_thread(ask, server.port)
                await idle(server)

    run(send())


def test_a_client_that_never_ends_is_cut() -> None:
    """Neither by its bytes nor by their number does a client keep a connection."""

    async def send() -> None:
        async with serving(max_body=1000, head_timeout=0.2) as server:
            for pause in (0.0, 0.05):
                client = await server.client()
                client.writer.write(CHUNKED + b"no chunk\r\n")
                async with asyncio.timeout(5):
                    while server.state.connections:
                        client.writer.write(bytes(100))
                        await asyncio.sleep(pause)

    run(send())
