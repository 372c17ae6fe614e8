"""How much of the machine others use while one process is measured.

Peers that wait for their turn count as others, so that one that spins while idle is seen, too.
"""

from __future__ import annotations

import os
from pathlib import Path

_IDLE = (3, 4)
_GUESTS = 8


class OtherWork:
    """Begins to watch when it is made.

    Args:
        pid: the process that is measured.
    """

    def __init__(self, pid: int) -> None:
        self._pids = (pid, os.getpid())
        self._busy, self._total = _machine_ticks()
        self._own = sum(map(_process_ticks, self._pids))

    def share(self) -> float:
        """The part of all processors' time that was neither idle nor the process's, 0 to 1."""
        busy, total = _machine_ticks()
        own = sum(map(_process_ticks, self._pids)) - self._own
        return max(0.0, (busy - self._busy - own) / max(1, total - self._total))


def _machine_ticks() -> tuple[int, int]:
    """Ticks that were not idle, and all; guests' are in the user's already."""
    first = Path("/proc/stat").read_text().splitlines()[0]
    ticks = [int(field) for field in first.split()[1:]][:_GUESTS]
    return sum(t for at, t in enumerate(ticks) if at not in _IDLE), sum(ticks)


def _process_ticks(pid: int) -> int:
    """Ticks of a process and its threads; fields 14 and 15, counted after the name."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
