"""Who uses the engines next: one at a time, the most urgent of those who wait, then who came first.

Nobody is interrupted: an inference that has begun runs to its end.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Generator
from contextlib import contextmanager

USUAL = 0
"""How urgent work is that nobody said anything of; less is more urgent."""


class Turns:
    """A lock that is given to the most urgent; entered as any lock, and not twice by one thread.

    The threads of streams alone enter it. In the main thread a signal's handler may raise just when
    the lock was taken: then nobody gives it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: list[tuple[int, int, threading.Lock]] = []
        """A heap: how urgent, when it came, and what it waits for."""
        self._arrivals = itertools.count()
        self._own = threading.local()

    @property
    def waiting(self) -> int:
        """How many wait."""
        with self._lock:
            return len(self._waiting)

    @contextmanager
    def at(self, rank: int) -> Generator[None]:
        """Let what this thread does meanwhile be so urgent; less is more."""
        before = self._rank
        self._own.rank = rank
        try:
            yield
        finally:
            self._own.rank = before

    def __enter__(self) -> None:
        """Wait for a turn."""
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
        except BaseException:  # an interrupt: the turn may be its own already, or still to come
            self._give_up(entry)
            raise

    def __exit__(self, *error: object) -> None:
        """Give the next one its turn."""
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
