"""The process that calls: its memory, and what only it can do.

The driver's process reads what calls point to, and writes results, as a kernel's driver does.
Memory that both use is a file of the driver's process that the host maps, at an address of its
choice.

Source: process_vm_readv(2).
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driver_layer.c_abi.declarations import POINTER_TYPES, ffi
from driver_layer.errors import NoDescriptor, OutOfMemory
from driver_layer.npu.memory import Bytes
from driver_layer.npu.shareable import Shareable
from driver_layer.support.pages import CAN_POPULATE
from driver_layer.ze import errors

_PAGE = 4096
_ROOM = 1 << 20
"""Bytes for texts that the driver gives out; an old one is overwritten when they are used up."""

_system: Any = ffi.dlopen(None)

Ask = Callable[..., int]
"""Have the host carry out a request, by its name in ``channels``; raises OSError."""


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes in the host's memory."""

    address: int
    size: int


class Host:
    """A process whose calls this one answers.

    Args:
        number: number of the process.
        ask: has the process carry out requests.
    """

    def __init__(self, number: int, ask: Ask) -> None:
        self.number = number
        self._ask = ask
        self._lock = threading.Lock()
        """Lock of the three fields below."""
        self._texts: dict[str, int] = {}
        self._room: tuple[int, Any] = (0, b"")
        """Address of the room for texts, and the driver's view of it."""
        self._used = 0

    def read_into(self, address: int, target: Any) -> None:
        """Fill a buffer with bytes at an address.

        Raises:
            ZeError: INVALID_ARGUMENT: some are not memory of the host.
        """
        self._transfer(_system.process_vm_readv, address, target)

    def write(self, address: int, content: Any) -> None:
        """Write the content of a buffer to an address; raises as ``read_into``."""
        self._transfer(_system.process_vm_writev, address, content)

    def _transfer(self, move: Any, address: int, buffer: Any) -> None:
        own = ffi.from_buffer(buffer)
        size, done = len(own), 0
        while done < size:
            here = ffi.new("struct iovec *", (own + done, size - done))
            there = ffi.new("struct iovec *", (ffi.cast("void *", address + done), size - done))
            moved = move(self.number, here, 1, there, 1, 0)
            if moved <= 0:
                if ffi.errno == errno.EFAULT:
                    message = f"{size} bytes at {address:#x} are not memory of the caller"
                    raise errors.invalid_argument(message)
                raise OSError(ffi.errno, os.strerror(ffi.errno))
            done += moved

    def bytes_at(self, address: int, size: int, name: str) -> Bytes:
        """Return a copy of bytes, u8.

        Raises:
            ZeError: INVALID_NULL_POINTER, or INVALID_SIZE for more bytes than a process has.
        """
        if not size:
            return np.empty(0, np.uint8)
        errors.not_null(address, name)
        if size >> 48:
            raise errors.invalid_size(f"{name}: {size} bytes")
        try:
            found = np.empty(size, np.uint8)
        except MemoryError:
            raise errors.invalid_size(f"{name}: {size} bytes") from None
        self.read_into(address, found)
        return found

    def text_at(self, address: int) -> str:
        """Return the string at an address, up to its NUL."""
        found = bytearray()
        while True:  # by pages: what follows the string's page need not be mapped
            chunk = bytearray(_PAGE - (address + len(found)) % _PAGE)
            self.read_into(address + len(found), chunk)
            text, end, _ = chunk.partition(b"\0")
            found += text
            if end:
                return found.decode(errors="replace")

    def structure_at(self, kind: str, address: int) -> Any:
        """Return a copy of a structure, by the name of its type in C."""
        found = ffi.new(f"{kind} *")
        self.read_into(address, ffi.buffer(found))
        return found

    def numbers_at(self, kind: str, address: int, count: int) -> list[int]:
        """Return the numbers of an array, by the name of their type in C."""
        if not count:
            return []
        found = ffi.new(f"{kind}[]", count)
        self.read_into(address, ffi.buffer(found))
        numbers: Any = ffi.unpack(found, count)
        return numbers

    def put_number(self, kind: str, address: int, number: Any) -> None:
        """Write a number, by the name of its type in C."""
        self.write(address, ffi.buffer(ffi.new(POINTER_TYPES[kind], number)))

    def map(self, descriptor: int, size: int, writable: bool) -> int:
        """Map a file of this process into the host; return the address there.

        Raises:
            OutOfMemory: the host has no room; NoDescriptor if it has no descriptor left.
        """
        try:
            return self._ask("MAP", descriptor, size, writable)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise NoDescriptor(f"the host maps no memory: {error.strerror}") from None
            raise OutOfMemory(f"the host cannot map {size} bytes: {error.strerror}") from None

    def unmap(self, address: int, size: int) -> None:
        """Remove memory from the host."""
        self._ask("UNMAP", address, size)

    def populate(self, address: int, size: int, write: bool) -> bool:
        """Return whether pages of the host are there, after it has loaded them.

        A system that cannot tell believes the caller.
        """
        if not CAN_POPULATE:
            return True
        try:
            self._ask("POPULATE", address, size, write)
        except OSError:
            return False
        return True

    def give_descriptor(self, descriptor: int) -> int:
        """Return the host's own descriptor of a file of this process.

        Raises:
            NoDescriptor: the host has no descriptor left.
        """
        try:
            return self._ask("OPEN", descriptor)
        except OSError as error:
            raise NoDescriptor(f"no descriptor for shareable memory: {error.strerror}") from None

    def close_descriptor(self, descriptor: int) -> None:
        """Close a descriptor of the host."""
        self._ask("CLOSE", descriptor)

    def keep_text(self, text: str) -> int:
        """Return the address of a string in the host, which stays until many others were kept."""
        with self._lock:
            if text not in self._texts:
                self._texts[text] = self._put_text(np.frombuffer(text.encode() + b"\0", np.uint8))
            return self._texts[text]

    def _put_text(self, content: Bytes) -> int:
        """Write a text behind the others, or, if the room is used up, over them."""
        address, room = self._room
        if self._used + content.size > len(room):
            self._texts.clear()
            self._used = 0
            if content.size > len(room):
                address, room = self._room = self.map_copy(bytes(max(_ROOM, content.size)))
        room[self._used : self._used + content.size] = content
        self._used += content.size
        return address + self._used - content.size

    def map_copy(self, content: Any) -> tuple[int, Any]:
        """Return the address of a copy of bytes in the host, and this process's view of it."""
        made = Shareable.allocate(len(content))
        made.data[:] = np.frombuffer(content, np.uint8)
        return self.map(made.descriptor, len(content), writable=True), made.data


_attached: list[Host] = []


def attach(host: Host) -> None:
    """Make a process the one whose calls are answered."""
    _attached[:] = [host]


def host() -> Host:
    """Return the process whose calls are answered."""
    return _attached[0]
