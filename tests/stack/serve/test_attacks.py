"""A real server with few file handles, and clients that hold connections."""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.stack.serve.conftest import Serve

HANDLES = 256
MOST_LOG = 2000
"""Bytes of the log after all attacks."""

_POST = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n"
ATTACKS = {
    "nothing": b"",
    "a part of a head": b"GET /health HTT",
    "a part of a body": _POST + b'Content-Type: application/json\r\n\r\n{"',
    "no http": b"\x16\x03\x01\r\n\r\n",
    "streams without an end": b"GET /npu/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "many requests": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50,
}
"""Bytes that a client sends before it waits."""


@contextlib.contextmanager
def held(port: int, count: int, data: bytes) -> Generator[None]:
    """Hold connections that have sent some bytes, as far as the server lets them be."""
    with contextlib.ExitStack() as opened:
        for _ in range(count):
            one = opened.enter_context(socket.socket())
            with contextlib.suppress(OSError):  # closed by the server
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                one.connect(("127.0.0.1", port))
                one.send(data)
        yield


@pytest.fixture
def many_files() -> Generator[None]:
    kept = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (kept[1], kept[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, kept)


@pytest.mark.matrix
@pytest.mark.parametrize("count", [150, 3000])
def test_health_lives_and_the_log_stays_short(
    serve_demo: Serve, many_files: None, count: int
) -> None:
    with serve_demo(handles=HANDLES) as server:
        for data in ATTACKS.values():
            with held(server.port, count, data):
                for _ in range(5):
                    server.get("/health")
        server.get("/ready")
        assert server.stop(signal.SIGTERM) == 0
        log = server.log.read_text()
        assert "more than 128 connections: those that wait longest are closed" in log
        assert "Traceback" not in log
        assert "Too many open files" not in log
        assert len(log) < MOST_LOG


@pytest.mark.long
def test_clients_that_do_not_read_leave_room(serve_demo: Serve) -> None:
    """Streams that are not read end after the seconds in which a client takes what is sent."""
    with serve_demo(handles=HANDLES) as server:
        files = Path(f"/proc/{server.process.pid}/fd")
        before = len(list(files.iterdir()))
        with held(server.port, 100, ATTACKS["streams without an end"]):
            time.sleep(1)
            assert len(list(files.iterdir())) >= before + 90
            end = time.monotonic() + 90
            while len(list(files.iterdir())) > before + 10 and time.monotonic() < end:
                time.sleep(1)
            assert len(list(files.iterdir())) <= before + 10
            server.get("/v1/models")
