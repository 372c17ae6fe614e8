"""A priority lock for the engines: the most urgent waiter is next, then the earliest.

There is no preemption: an inference that has begun runs to its end.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Generator
from contextlib import contextmanager

USUAL = 0
"""Default rank of work; a smaller rank is more urgent."""


class Turns:
    """A lock that the most urgent waiter acquires next; a context manager, not reentrant.

    Only the threads of streams may enter it. In the main thread, a signal handler may raise just
    after the lock was acquired; then the lock is never released.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: list[tuple[int, int, threading.Lock]] = []
        """Heap of waiters: rank, number of arrival, and the lock that the waiter waits for."""
        self._arrivals = itertools.count()
        self._own = threading.local()

    @property
    def waiting(self) -> int:
        """Number of waiters."""
        with self._lock:
            return len(self._waiting)

    @contextmanager
    def at(self, rank: int) -> Generator[None]:
        """Set this thread's rank within a ``with`` block; a smaller rank is more urgent."""
        before = self._rank
        self._own.rank = rank
        try:
            yield
        finally:
            self._own.rank = before

    def __enter__(self) -> None:
        """Acquire the lock, waiting for a turn."""
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            turn = threading.Lock()
            turn.acquire()
            entry = (self._rank, next(self._arrivals), turn)
            heapq.heappush(self._waiting, entry)
        try:
            turn.acquire()
        except BaseException:  # an interrupt: the turn may have been granted already or not
            self._give_up(entry)
            raise

    def __exit__(self, *error: object) -> None:
        """Release the lock to the next waiter."""
        with self._lock:
            self._pass_on()

    @property
    def _rank(self) -> int:
        return getattr(self._own, "rank", USUAL)

    def _pass_on(self) -> None:
        if self._waiting:
            heapq.heappop(self._waiting)[2].release()
        else:
            self._taken = False

    def _give_up(self, entry: tuple[int, int, threading.Lock]) -> None:
        with self._lock:
            if entry in self._waiting:
                self._waiting.remove(entry)
                heapq.heapify(self._waiting)
            else:
                self._pass_on()
