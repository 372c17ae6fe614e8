"""The doorbell: a condition variable for signals between streams and the host.

A device has one doorbell. Code that changes state that others may wait for holds the doorbell's
lock and rings; waiters check their conditions again at each ring. A device that shuts down closes
the doorbell: every wait then ends in a fault, so no missing signal can keep a process alive.
"""

from __future__ import annotations

from collections.abc import Callable

from driver_layer.errors import DeviceFault
from driver_layer.support.bell import Bell


class Doorbell:
    """Condition variable on which threads wait until a predicate is true."""

    def __init__(self) -> None:
        self._bell = Bell()
        self._closed = False

    def ring(self, change: Callable[[], None]) -> None:
        """Make a change that others may wait for, and wake the waiters."""
        with self._bell.lock:
            change()
            self._bell.ring()

    def wait(self, ready: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until ``ready`` returns true or a timeout; return the last result.

        Raises:
            DeviceFault: the device shuts down before ``ready`` returns true.
        """
        is_ready = False

        def look() -> bool:
            nonlocal is_ready
            is_ready = ready()
            return is_ready or self._closed

        if self._bell.wait(look, seconds) and not is_ready:
            raise DeviceFault("the device shut down during a wait for a signal")
        return is_ready

    def close(self) -> None:
        """End all present and future waits."""
        with self._bell.lock:
            self._closed = True
            self._bell.ring()
