"""Channels: the memory on which the driver takes turns with each thread of the host.

``channel.c`` describes the turns, and ``process.c`` has the host's side.
"""

from __future__ import annotations

import mmap
import os
import threading
from typing import Any

from driver_layer.c_abi.declarations import ffi

_FIRST = 0xFFFFFF00
ANSWER, MAP, UNMAP, POPULATE, OPEN, CLOSE, LEAVE = range(_FIRST, _FIRST + 7)

_REQUESTS = {"MAP": MAP, "UNMAP": UNMAP, "POPULATE": POPULATE, "OPEN": OPEN, "CLOSE": CLOSE}

_own = threading.local()


class Channels:
    """The memory that the host shares with this process.

    Args:
        library: path of the library that the host has loaded, which has both sides' functions.
        descriptor: descriptor of the memory.
    """

    def __init__(self, library: str, descriptor: int) -> None:
        self._turns: Any = ffi.dlopen(library)
        self._pages = mmap.mmap(descriptor, ffi.sizeof("shared_t"))
        self.shared: Any = ffi.cast("shared_t *", ffi.from_buffer(self._pages))

    @property
    def key(self) -> str:
        """Digest of the description that the library was made of."""
        return bytes(ffi.buffer(self.shared.key)).rstrip(b"\0").decode()

    def greet(self) -> None:
        """Tell the host this process's number, and wait until it permits to read its memory."""
        self.shared.driver = os.getpid()
        self._turns.npu_driver_take_turns(self.shared, ffi.addressof(self.shared, "ready"))

    def open(self) -> None:
        """Tell the host that its calls are answered now."""
        self._turns.npu_driver_give_turn(ffi.addressof(self.shared, "ready"))

    def channel(self, index: int) -> Channel:
        """Return a channel of this thread, for a thread of the host that has begun to use it."""
        place = ffi.addressof(self.shared.channels, index)
        _own.channel = Channel(self._turns, self.shared, place)
        return _own.channel


class Channel:
    """The driver's side of a channel, for one thread.

    Args:
        turns: the library's functions.
        shared: the memory of all channels.
        place: the channel in it.
    """

    def __init__(self, turns: Any, shared: Any, place: Any) -> None:
        self._turns = turns
        self._shared = shared
        self._place = place
        turns.npu_driver_await_turn(shared, place)

    @property
    def function(self) -> int:
        """Number of the function that is called; LEAVE when the host's thread ends."""
        return self._place.request

    @property
    def thread(self) -> int:
        """The host's number of its thread."""
        return self._place.thread

    def arguments(self, count: int) -> list[int]:
        """Return the numbers of a call's arguments."""
        return list(self._place.words[0:count])

    def answer(self, result: int) -> None:
        """Answer a call with its result code, and wait for the next one."""
        self._put(ANSWER, result)
        self._turns.npu_driver_take_turns(self._shared, self._place)

    def part(self) -> None:
        """Answer for the last time."""
        self._put(ANSWER, 0)
        self._turns.npu_driver_give_turn(self._place)

    def ask(self, request: int, *words: int) -> int:
        """Have the host's thread carry out a request; return the number that it answers.

        Raises:
            OSError: it could not.
        """
        for index, word in enumerate(words):
            self._place.words[index] = word
        self._put(request, 0)
        self._turns.npu_driver_take_turns(self._shared, self._place)
        if self._place.result:
            raise OSError(self._place.result, os.strerror(self._place.result))
        return self._place.words[0]

    def _put(self, request: int, result: int) -> None:
        self._place.request = request
        self._place.result = result


def calling_thread() -> int:
    """Return the host's number of the thread whose call this thread answers."""
    channel: Channel = _own.channel
    return channel.thread


def ask_caller(request: str, *words: int) -> int:
    """Have the thread of the host whose call this thread answers carry out a request."""
    channel: Channel = _own.channel
    return channel.ask(_REQUESTS[request], *words)
