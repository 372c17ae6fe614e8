"""Messages between processes that share weights, without trust in the sender.

A message is the mark, four bytes of length n (little-endian), and n bytes of JSON. A message may
carry memory as a descriptor. Both sides check that the other is the same user, that a length is
plausible before reading on, and that everything arrives before a deadline.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npuw_layer.errors import SharingError

MARK = b"NPUW"
_HEAD = struct.Struct("<4sI")
_INT = struct.Struct("i")
_CREDENTIALS = struct.Struct("3i")

REQUEST_BYTES = 1024
"""Limit of a request's length."""
REPLY_BYTES = 1 << 24
"""Limit of a reply's length: a model of a hundred layers needs a hundredth of it."""

_Count = Annotated[int, Field(ge=0, lt=1 << 62)]


class Message(BaseModel):
    """Base of all messages: unknown fields are rejected, and types are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class WireRequest(Message):
    """Request for the arena, or for the process's usage of it."""

    want: Literal["arena", "usage"]
    identity: str = Field(pattern="^[0-9a-f]{32}$")


class OfferedSlot(Message):
    """A weight's name and location, bytes."""

    name: str
    offset: _Count
    nbytes: _Count


class Offer(Message):
    """An arena; its descriptor is sent with it."""

    identity: str
    nbytes: _Count
    slots: list[OfferedSlot]


class Usage(Message):
    """A process's mapped bytes of the arena: RSS, and PSS, where shared pages count less.

    A page that n processes have mapped counts 1/n in the PSS of each.
    """

    resident: _Count
    proportional: _Count


M = TypeVar("M", bound=Message)


class Connection:
    """A connected socket with a deadline for the whole exchange.

    Args:
        link: connected; its owner closes it.
        seconds: until the deadline.

    Raises:
        SharingError: the other side is a process of another user.
    """

    def __init__(self, link: socket.socket, seconds: float) -> None:
        self._link = link
        self._deadline = time.monotonic() + seconds
        raw = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        self.pid, user, _ = _CREDENTIALS.unpack(raw)
        if user != os.geteuid():
            raise SharingError(f"process {self.pid} is of another user")

    def send(self, message: Message, descriptor: int | None = None) -> None:
        """Send a message, optionally with a descriptor.

        Raises:
            SharingError: the other process has ended, or is too slow.
        """
        content = message.model_dump_json().encode()
        head = _HEAD.pack(MARK, len(content))
        try:
            self._set_timeout()
            if descriptor is None:
                self._link.sendall(head)
            else:
                socket.send_fds(self._link, [head], [descriptor])
            self._set_timeout()
            self._link.sendall(content)
        except OSError as error:
            raise SharingError(f"process {self.pid} does not accept the message: {error}") from None

    def receive(self, kind: type[M], limit: int) -> M:
        """Receive a message of at most ``limit`` bytes.

        Raises:
            SharingError: the message is of another kind, or late.
        """
        return self._content(kind, self._read(_HEAD.size), limit)

    def receive_with_descriptor(self, kind: type[M], limit: int) -> tuple[M, int]:
        """Receive a message and its descriptor, which the caller closes.

        Raises:
            SharingError: as ``receive``, or it has no descriptor, or more than one.
        """
        descriptors: list[int] = []
        try:
            self._set_timeout()
            head, control, _, _ = self._link.recvmsg(
                _HEAD.size, socket.CMSG_SPACE(2 * _INT.size), socket.MSG_CMSG_CLOEXEC
            )
            for level, kind_of_data, data in control:
                if (level, kind_of_data) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    whole = len(data) - len(data) % _INT.size
                    descriptors += (one for (one,) in _INT.iter_unpack(data[:whole]))
            if len(descriptors) != 1:
                raise SharingError(f"process {self.pid} sent {len(descriptors)} descriptors, not 1")
            head += self._read(_HEAD.size - len(head))
            return self._content(kind, head, limit), descriptors.pop()
        except OSError as error:
            raise SharingError(f"process {self.pid} does not answer: {error}") from None
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _content(self, kind: type[M], head: bytes, limit: int) -> M:
        mark, length = _HEAD.unpack(head)
        if mark != MARK or length > limit:
            raise SharingError(f"process {self.pid} sent no npuw message")
        try:
            return kind.model_validate_json(self._read(length))
        except ValidationError as error:
            raise SharingError(f"process {self.pid} sent no {kind.__name__}: {error}") from None

    def _read(self, count: int) -> bytes:
        """Read exactly ``count`` bytes."""
        parts: list[bytes] = []
        while count > 0:
            try:
                self._set_timeout()
                part = self._link.recv(min(count, 1 << 16))
            except OSError as error:
                raise SharingError(f"process {self.pid} does not answer: {error}") from None
            if not part:
                raise SharingError(f"process {self.pid} ended in the middle of a message")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _set_timeout(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("too slow")
        self._link.settimeout(left)
