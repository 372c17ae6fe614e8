"""Completion and error of work that another thread does."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

LOOK_S = 0.05
"""Polling period of waiters, in case an interrupted thread never wakes them."""


class Outcome:
    """Completion of a job and the exception that it raised.

    ``concurrent.futures.Future`` waits with a lock that the worker needs as well. If a signal
    handler raises (as Ctrl-C's does) just after the lock was acquired, the lock is never released
    and the worker hangs. Here the worker needs no lock that a waiter may hold.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        """Exception that the job raised; None if it raised none or has not ended."""
        self._ended = False
        self._running = threading.Lock()
        """Held until the job ends. Waiters then acquire and release it in turn; an interrupted
        waiter may never release it, so the others poll."""
        self._running.acquire()

    @property
    def ended(self) -> bool:
        """True if the job has ended."""
        return self._ended

    def run(self, job: Callable[[], object]) -> None:
        """Run the job, once; an exception that it raises is kept in ``error``."""
        try:
            job()
        except BaseException as error:
            self.error = error
        self._ended = True
        self._running.release()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the job has ended or a timeout; return whether it has ended."""
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while not self._ended:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if self._running.acquire(timeout=min(left, LOOK_S)):
                self._running.release()
        return True
