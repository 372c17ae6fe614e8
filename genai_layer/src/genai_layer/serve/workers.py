"""Threads for the work of requests: short work side by side, long work one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LONG = 1 << 16
"""Characters, bytes or tokens above which work is long."""


class Workers:
    """Threads in which requests are read and encoded, so that the event loop stays free.

    Long work runs one at a time: its memory does not grow with the number of clients, and it takes
    no thread from short work.
    """

    def __init__(self) -> None:
        self._one = ThreadPoolExecutor(1, "npu-serve long work")

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """Return the result of work; if the client leaves, work that has not begun never begins.

        Args:
            size: characters, bytes or tokens that the work reads.
            work: called in a thread.
        """
        threads = self._one if size > LONG else None
        return await asyncio.get_running_loop().run_in_executor(threads, work)
