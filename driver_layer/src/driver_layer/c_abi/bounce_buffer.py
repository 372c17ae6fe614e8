"""Bounce buffers: the device's copies of pages that the host has imported.

The pages stay the host's own, so this process cannot map them. A command that uses them copies them
to the device before, and those that it has changed back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from driver_layer.c_abi.host import Host
from driver_layer.npu.memory import PAGE_BYTES, Bytes, zeroed


class PageBuffer:
    """Copy of the host's pages.

    Args:
        host: the host.
        address: address of the pages there.
        size: number of bytes.
        writable: False copies nothing back.

    Raises:
        OutOfMemory: this process has no such memory.
    """

    def __init__(self, host: Host, address: int, size: int, writable: bool) -> None:
        self._host = host
        self._address = address
        self._writable = writable
        self.data = zeroed(size)

    def load(self) -> Callable[[], None]:
        """Copy the host's bytes; return what copies the changes back.

        Raises:
            ZeError: INVALID_ARGUMENT: the host has removed the pages.
        """
        self._host.read_into(self._address, self.data)
        if not self._writable:
            return _nothing
        return partial(self._store, self.data.copy())

    def _store(self, before: Bytes) -> None:
        """Write what has changed: bytes that the host has written meanwhile beside them stay."""
        for first, last in changes(before, self.data):
            self._host.write(self._address + first, self.data[first:last])


def changes(before: Bytes, after: Bytes) -> list[tuple[int, int]]:
    """Return the ranges of bytes that differ, one for each run of pages with differences."""
    differ = before != after
    begins = list(range(0, differ.size, PAGE_BYTES))
    pages = np.logical_or.reduceat(differ, begins)
    edges = np.flatnonzero(np.diff(pages, prepend=False, append=False))
    ranges = list[tuple[int, int]]()
    for first, last in edges.reshape(-1, 2) * PAGE_BYTES:
        inside = np.flatnonzero(differ[first:last])
        ranges.append((int(first + inside[0]), int(first + inside[-1]) + 1))
    return ranges


def _nothing() -> None:
    """Do nothing: the device cannot have changed the pages."""
