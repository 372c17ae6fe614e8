"""A condition variable that survives signal handlers that raise.

``threading.Condition``, and Event, Semaphore, Queue and Future, which are built on it, enter their
lock in Python code. If a signal handler raises there, as Ctrl-C's does, the lock stays locked and
every thread that needs the lock hangs. A lock alone is safe: ``with`` acquires and releases it in
C, and CPython runs no signal handler in between.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from driver_layer.support.outcome import LOOK_S


class Bell:
    """A lock, and the threads that wait for a change of the state that the lock guards."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Held while the guarded state changes; enter it by ``with`` only. A signal handler that
        interrupts the holder may enter it again."""
        self._sleeping: set[threading.Lock] = set()
        """One locked lock per waiter; that of an interrupted waiter stays until the next ring."""

    def ring(self) -> None:
        """Make all waiters check again; the caller holds the lock.

        If the caller is interrupted, the waiters check again after ``LOOK_S``.
        """
        for waiter in tuple(self._sleeping):
            self._sleeping.discard(waiter)
            waiter.release()

    def wait(self, ready: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until ``ready`` is true; return False after a timeout.

        Args:
            ready: the condition, called with the lock held.
            seconds: the timeout; None waits without limit.
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
