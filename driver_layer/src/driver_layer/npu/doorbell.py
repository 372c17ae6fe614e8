"""The doorbell: where streams and the host wait for each other's signals.

There is one for a device. Who changes something that others may wait for does so under its lock and
rings; who waits looks again each time. A device that shuts down closes it: then every wait ends in
a fault, so that a signal that never comes cannot keep a process from ending.
"""

from __future__ import annotations

from collections.abc import Callable

from driver_layer.errors import DeviceFault
from driver_layer.support.bell import Bell


class Doorbell:
    """Lets threads wait until something has become true."""

    def __init__(self) -> None:
        self._bell = Bell()
        self._closed = False

    def ring(self, change: Callable[[], None]) -> None:
        """Make a change that others may wait for."""
        with self._bell.lock:
            change()
            self._bell.ring()

    def wait(self, ready: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until something is true, at most so long; tell whether it is.

        Raises:
            DeviceFault: the device shuts down, and it is not.
        """
        is_ready = False

        def look() -> bool:
            nonlocal is_ready
            is_ready = ready()
            return is_ready or self._closed

        if self._bell.wait(look, seconds) and not is_ready:
            raise DeviceFault("the device shut down while something waited for a signal")
        return is_ready

    def close(self) -> None:
        """End all waits, now and from now on."""
        with self._bell.lock:
            self._closed = True
            self._bell.ring()
