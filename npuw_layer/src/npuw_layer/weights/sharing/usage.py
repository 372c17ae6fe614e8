"""Memory that sharing saves, as counted by the kernel."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from npuw_layer.weights.sharing.wire import Usage


@dataclass(frozen=True, slots=True)
class SharingReport:
    """The weights of a bank, and all processes that use them."""

    arena_bytes: int
    """Bytes of weights copied to the arena."""
    file_bytes: int
    """Bytes of the files used in place."""
    processes: Mapping[int, Usage]
    """Memory of both that each process, by its id, has mapped now, as counted by the kernel."""

    @property
    def resident_bytes(self) -> int:
        """Bytes that all processes hold together: the sum of their proportional shares (PSS)."""
        return sum(one.proportional for one in self.processes.values())

    @property
    def unshared_bytes(self) -> int:
        """Bytes that they would hold with their own pages: the sum of resident sizes (RSS)."""
        return sum(one.resident for one in self.processes.values())

    def __str__(self) -> str:
        counts = self.arena_bytes, self.file_bytes, self.resident_bytes, self.unshared_bytes
        arena, files, resident, unshared = (f"{count / 1e6:.1f} MB" for count in counts)
        return (
            f"weights ({arena} in an arena, {files} in files) are shared by "
            f"{len(self.processes)} processes: {resident} resident instead of {unshared}"
        )


def measure(descriptor: int, files: Collection[str]) -> Usage:
    """Count this process's mapped bytes of a descriptor's memory, and of files.

    Args:
        descriptor: descriptor of the arena.
        files: real paths of the files.
    """
    inode = str(os.fstat(descriptor).st_ino)
    resident = proportional = 0
    counts = False
    # A path may contain any bytes, and any blank except a newline.
    smaps = Path("/proc/self/smaps").read_bytes().decode(errors="surrogateescape")
    for line in smaps.rstrip("\n").split("\n"):
        name, *values = line.split(maxsplit=5)
        if not name.endswith(":"):  # a mapping: addresses, rights, offset, device, inode, path
            path = values[4] if len(values) == 5 else ""
            counts = path in files or (path.startswith("/memfd:") and values[3] == inode)
        elif counts and name == "Rss:":
            resident += int(values[0]) << 10
        elif counts and name == "Pss:":
            proportional += int(values[0]) << 10
    return Usage(resident=resident, proportional=proportional)
