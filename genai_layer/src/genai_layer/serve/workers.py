"""Threads for the work of requests: short work side by side, long work one at a time.

If the client leaves, work that has not begun never begins, and the encoding of a long text ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from genai_layer.long_texts import needed_until

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
        """Return the result of work.

        Args:
            size: characters, bytes or tokens that the work reads.
            work: called in a thread.
        """
        left = threading.Event()

        def work_for_client() -> T:
            with needed_until(left):
                return work()

        threads = self._one if size > LONG else None
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work_for_client)
        finally:
            left.set()
