"""Counters of a device, which only grow: its engines' work since the device was created."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager


class Counters:
    """Work of the engines; one thread at a time changes it, as inferences run one at a time."""

    def __init__(self) -> None:
        self.inferences = 0
        """Inferences that ended, without those that failed."""
        self.faults = 0
        """Inferences that failed."""
        self._active_ns = 0
        self._began: int | None = None

    def active_until_now(self) -> int:
        """Return the time in which inferences ran, in ns of the host's clock."""
        began = self._began
        running = 0 if began is None else time.monotonic_ns() - began
        return self._active_ns + running

    @contextmanager
    def running(self) -> Generator[None]:
        """Count the inference that runs in a ``with`` block."""
        self._began = time.monotonic_ns()
        try:
            yield
        except BaseException:
            self.faults += 1
            raise
        else:
            self.inferences += 1
        finally:
            self._active_ns = self.active_until_now()
            self._began = None
