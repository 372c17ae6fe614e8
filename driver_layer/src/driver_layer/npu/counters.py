"""Counters of a device, which only grow: its engines' work since the device was created."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace


@dataclass(slots=True)
class Counters:
    """Work of the engines; one thread at a time changes it, as inferences run one at a time."""

    inferences: int = 0
    """Inferences that ended, without those that failed."""
    faults: int = 0
    """Inferences that failed."""
    active_ns: int = 0
    """Time in which an inference ran, in ns of the host, as the simulated device takes it."""

    @contextmanager
    def running(self) -> Generator[None]:
        """Count the inference that runs in a ``with`` block."""
        begin = time.monotonic_ns()
        try:
            yield
        except BaseException:
            self.faults += 1
            raise
        else:
            self.inferences += 1
        finally:
            self.active_ns += time.monotonic_ns() - begin

    def copy(self) -> Counters:
        """Return the present values."""
        return replace(self)
