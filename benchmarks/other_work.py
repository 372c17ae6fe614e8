"""Share of the machine that other processes use during a measurement.

Peers that wait for their turn count as others, so that a peer that spins while idle is noticed.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_IDLE = (3, 4)
_GUESTS = 8


QUIET = 0.10
"""Share of the machine that other processes may use during a measurement."""

_LOOK_SECONDS = 0.2


class OtherWork:
    """Watch of other processes, from its creation.

    Args:
        pids: the measured processes, in addition to this one.
    """

    def __init__(self, *pids: int) -> None:
        self._pids = (*pids, os.getpid())
        self._busy, self._total = _machine_ticks()
        self._own = sum(map(_process_ticks, self._pids))

    def share(self) -> float:
        """Return the share of all processors' time used by other processes, 0 to 1."""
        busy, total = _machine_ticks()
        own = sum(map(_process_ticks, self._pids)) - self._own
        return max(0.0, (busy - self._busy - own) / max(1, total - self._total))


def wait_for_quiet(patience: float) -> None:
    """Wait until other processes are quiet, or ``patience`` has passed.

    Waits at least a moment: threads of BLAS and OpenMP spin for a while before they sleep.

    Args:
        patience: seconds.
    """
    began = time.monotonic()
    while True:
        watch = OtherWork()
        time.sleep(_LOOK_SECONDS)
        if watch.share() <= QUIET or time.monotonic() - began >= patience:
            return


def _machine_ticks() -> tuple[int, int]:
    """Return busy and all ticks; guests' ticks are included in the user's."""
    first = Path("/proc/stat").read_text().splitlines()[0]
    ticks = [int(field) for field in first.split()[1:]][:_GUESTS]
    return sum(t for at, t in enumerate(ticks) if at not in _IDLE), sum(ticks)


def _process_ticks(pid: int) -> int:
    """Return the ticks of a process with its threads: fields 14 and 15, after the name."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
