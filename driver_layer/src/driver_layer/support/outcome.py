"""What becomes of work that another thread does, for those who wait for it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

LOOK_S = 0.05
"""Period of a waiter's own checks, in case an interrupted thread never wakes it."""


class Outcome:
    """Whether work has ended, and what it raised.

    ``concurrent.futures.Future`` waits with a lock that the worker needs as well. A handler of
    signals that raises (Ctrl-C does) may come just when it was taken: it is never given back, and
    the worker waits for ever. Here the worker needs nothing that who waits may hold.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        """What it raised; None as well until it has ended."""
        self._ended = False
        self._running = threading.Lock()
        """Held until it has ended; then those who wait pass it on, and one may be torn away with
        it: therefore they look again."""
        self._running.acquire()

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._ended

    def run(self, job: Callable[[], object]) -> None:
        """Do the work, once; whatever it raises is kept for who waits."""
        try:
            job()
        except BaseException as error:
            self.error = error
        self._ended = True
        self._running.release()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended, at most so long; tell whether it has."""
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while not self._ended:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if self._running.acquire(timeout=min(left, LOOK_S)):
                self._running.release()
        return True
