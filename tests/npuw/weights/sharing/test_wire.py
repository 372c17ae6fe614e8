"""Messages from a socket: other bytes are rejected, and no process hangs."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("weights are shared on Linux", allow_module_level=True)

from npuw_layer.errors import SharingError
from npuw_layer.weights.sharing import arena as arena_module
from npuw_layer.weights.sharing import server as server_module
from npuw_layer.weights.sharing import wire
from npuw_layer.weights.sharing.meeting import locked_meeting
from npuw_layer.weights.sharing.wire import (
    REPLY_BYTES,
    REQUEST_BYTES,
    Connection,
    Offer,
    Usage,
    WireRequest,
)

IDENTITY = "0123456789abcdef" * 2
ASK = WireRequest(want="arena", identity=IDENTITY)


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(arena_module, "_ANSWER_SECONDS", 1.0)


def connected(folder: Path) -> socket.socket:
    """Return a connection to the only process that serves."""
    (path,) = folder.iterdir()
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(10)
    descriptor = os.open(folder, os.O_RDONLY)
    link.connect(f"/proc/self/fd/{descriptor}/{path.name}")
    os.close(descriptor)
    return link


def framed(content: bytes, mark: bytes = wire.MARK, length: int | None = None) -> bytes:
    return struct.pack("<4sI", mark, len(content) if length is None else length) + content


def request(**fields: Any) -> bytes:
    return json.dumps({"want": "arena", "identity": IDENTITY} | fields).encode()


HOSTILE = {
    "nothing": b"",
    "a part of a head": b"NPU",
    "another mark": framed(request(), mark=b"HTTP"),
    "a length beyond the limit": framed(b"", length=REQUEST_BYTES + 1),
    "the largest length": framed(b"", length=0xFFFFFFFF),
    "more than the limit": framed(request() + b" " * REQUEST_BYTES),
    "less than its length": framed(request(), length=REQUEST_BYTES),
    "no JSON": framed(b"{"),
    "no text": framed(b"\xff\xfe\x00"),
    "a list": framed(b"[]"),
    "deep nesting": framed(b"[" * 1000),
    "an unknown wish": framed(request(want="everything")),
    "an unknown field": framed(request(more=1)),
    "no identity": framed(b'{"want": "arena"}'),
    "an identity that is a path": framed(request(identity="../../../../etc/passwd")),
    "an identity that is a number": framed(request(identity=1)),
    "other weights": framed(request(identity="f" * 32)),
    "garbage": np.random.default_rng(3).bytes(100_000),
}


@pytest.mark.matrix
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_an_invalid_request_gets_no_answer(arena, folder, here, content) -> None:
    with connected(folder) as link:
        try:
            link.sendall(content)
            assert link.recv(1) == b"", "the server closes the connection without an answer"
        except (ConnectionResetError, BrokenPipeError):
            pass  # the server closed the connection before all bytes were sent
    again = here.join(IDENTITY)
    assert here.is_right(again.memory.data)
    again.close()


def test_a_slow_sender_is_dropped(arena, folder, here) -> None:
    """The deadline applies to the complete request, whose bytes arrive one by one."""
    gone = threading.Event()
    link = connected(folder)  # while only one process serves

    def trickle() -> None:
        with link:
            for byte in framed(request()) * 100:
                try:
                    link.sendall(bytes([byte]))
                except OSError:
                    gone.set()
                    return
                time.sleep(0.02)

    thread = threading.Thread(target=trickle)
    thread.start()
    again = here.join(IDENTITY)
    again.close()
    thread.join()
    assert gone.is_set()


def test_descriptors_sent_by_a_client_are_closed(arena, folder) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        with connected(folder) as link, open("/dev/null") as null:
            socket.send_fds(link, [framed(b"{}")], [null.fileno()] * 3)
            assert link.recv(1) == b""
    assert len(os.listdir("/proc/self/fd")) == before


class Impostor:
    """A process that answers at a socket of the folder with arbitrary bytes."""

    def __init__(self, answer: Callable[[socket.socket], None]) -> None:
        with locked_meeting(IDENTITY) as meeting:
            self._meeting = meeting
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.bind(meeting.path("0.sock"))  # the first in the order of requests
            self._socket.listen()
        self._answer = answer
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            with link:
                link.recv(REQUEST_BYTES)
                self._answer(link)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._meeting.remove("0.sock")
        self._meeting.remove_if_empty()
        self._meeting.close()


def memory(nbytes: int, seals: int) -> int:
    """Return a descriptor of zeros."""
    import fcntl

    descriptor = os.memfd_create("x", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, nbytes)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


SIZE_SEALED, ALL_SEALED = 2 | 4, 2 | 4 | 8  # F_SEAL_SHRINK, F_SEAL_GROW; and F_SEAL_WRITE


def offer(here: Any, **fields: Any) -> bytes:
    slots = [
        {"name": name, "offset": slot.offset, "nbytes": slot.nbytes}
        for name, slot in here.LAYOUT.slots.items()
    ]
    whole = {"identity": IDENTITY, "nbytes": here.LAYOUT.nbytes, "slots": slots}
    return framed(json.dumps(whole | fields).encode())


ANSWERS: dict[str, Callable[[socket.socket, Any], None]] = {
    "nothing": lambda link, here: None,
    "garbage": lambda link, here: link.sendall(b"\0" * 100),
    "a huge length": lambda link, here: socket.send_fds(
        link, [framed(b"", length=REPLY_BYTES + 1)], [memory(here.LAYOUT.nbytes, ALL_SEALED)]
    ),
    "silence": lambda link, here: time.sleep(1.5),
    "no descriptor": lambda link, here: link.sendall(offer(here)),
    "two descriptors": lambda link, here: socket.send_fds(
        link, [offer(here)], [memory(here.LAYOUT.nbytes, ALL_SEALED)] * 2
    ),
    "memory that somebody may write": lambda link, here: socket.send_fds(
        link, [offer(here)], [memory(here.LAYOUT.nbytes, SIZE_SEALED)]
    ),
    "memory that is too small": lambda link, here: socket.send_fds(
        link, [offer(here)], [memory(4096, ALL_SEALED)]
    ),
    "a pipe": lambda link, here: socket.send_fds(link, [offer(here)], [os.pipe()[0]]),
    "other weights": lambda link, here: socket.send_fds(
        link, [offer(here, slots=[])], [memory(here.LAYOUT.nbytes, ALL_SEALED)]
    ),
    "another arena": lambda link, here: socket.send_fds(
        link, [offer(here, identity="f" * 32)], [memory(here.LAYOUT.nbytes, ALL_SEALED)]
    ),
    "a negative offset": lambda link, here: socket.send_fds(
        link,
        [offer(here, slots=[{"name": "weight 0", "offset": -64, "nbytes": 100}])],
        [memory(here.LAYOUT.nbytes, ALL_SEALED)],
    ),
}


@pytest.mark.matrix
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_after_a_wrong_offer_another_process_is_asked(arena, here, answer, caplog) -> None:
    impostor = Impostor(lambda link: answer(link, here))
    again = here.join(IDENTITY)
    impostor.close()
    assert "asking another process" in caplog.text
    assert here.is_right(again.memory.data)
    again.close()


def test_without_a_right_offer_a_process_creates_the_arena(here) -> None:
    impostor = Impostor(lambda link: ANSWERS["memory that somebody may write"](link, here))
    alone = here.join(IDENTITY)
    impostor.close()
    assert here.is_right(alone.memory.data)
    alone.close()


def test_another_user_is_rejected(monkeypatch) -> None:
    mine, other = socket.socketpair()
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with mine, other, pytest.raises(SharingError, match="another user"):
        Connection(mine, 1)


def test_messages_arrive_unchanged() -> None:
    mine, other = socket.socketpair()
    one, two = Connection(mine, 5), Connection(other, 5)
    one.send(ASK)
    assert two.receive(WireRequest, REQUEST_BYTES) == ASK
    usage = Usage(resident=3, proportional=2)
    two.send(usage)
    assert one.receive(Usage, REPLY_BYTES) == usage
    null = os.open("/dev/null", os.O_RDONLY)
    sent = Offer(identity=IDENTITY, nbytes=0, slots=[])
    two.send(sent, null)
    received, descriptor = one.receive_with_descriptor(Offer, REPLY_BYTES)
    assert received == sent
    assert os.path.sameopenfile(descriptor, null)
    assert not os.get_inheritable(descriptor)
    for each in (null, descriptor):
        os.close(each)
    mine.close()
    other.close()
