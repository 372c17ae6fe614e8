"""A condition variable that survives signal handlers that raise.

``threading.Condition``, and Event, Semaphore, Queue and Future, which are built on it, enter their
lock in Python code. If a signal's handler raises there, as Ctrl-C's does, the lock stays locked and
every thread that needs it hangs. A lock itself is safe: ``with`` enters and leaves it in C, and
CPython runs no handler in between.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from driver_layer.support.outcome import LOOK_S


class Bell:
    """A lock, and threads that wait until what it guards has changed."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Held while the guarded state changes; entered by ``with`` alone. A signal's handler that
        interrupts its holder may enter it again."""
        self._sleeping: set[threading.Lock] = set()
        """One locked lock for each waiter; an interrupted waiter's stays until the next ring."""

    def ring(self) -> None:
        """Let all waiters check again; the caller holds the lock.

        If the caller is interrupted, waiters check again after ``LOOK_S``.
        """
        for waiter in tuple(self._sleeping):
            self._sleeping.discard(waiter)
            waiter.release()

    def wait(self, ready: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until ``ready`` is true; return False after a timeout.

        Args:
            ready: the condition, called with the lock held.
            seconds: the timeout; None waits for ever.
        """
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while True:
            waiter = threading.Lock()
            waiter.acquire()
            with self.lock:
                if ready():
                    return True
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._sleeping.add(waiter)
            if not waiter.acquire(timeout=min(left, LOOK_S)):
                self._sleeping.discard(waiter)
