"""Memory-mapped files that are read in place, and the check for truncation.

Truncating a mapped file removes its pages, and reading them ends the process (SIGBUS). Truncation
by others cannot be prevented, but a reader can check for it before it reads.
"""

from __future__ import annotations

import errno
import mmap
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt


class Truncated(OSError):
    """A file has fewer bytes than when it was mapped; raised for no other reason."""


class MappedFile(mmap.mmap):
    """Read-only mapping of a complete file; the file may be closed."""

    name: str

    @staticmethod
    def of(file: BinaryIO) -> MappedFile:
        """Map an open file that is not empty.

        Raises:
            OSError, ValueError: the file cannot be mapped.
        """
        made = MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
        made.name = str(file.name)  # a number if the file is a bare descriptor
        return made

    def check(self) -> None:
        """Check that the file is as long as when it was mapped; costs one system call.

        Raises:
            Truncated: the file is shorter.
        """
        before, now = len(self), self.size()
        if now < before:
            problem = f"was truncated from {before} to {now} bytes while it is in use"
            raise Truncated(errno.EIO, problem, self.name)


def mapped_file_of(data: npt.NDArray[Any] | bytes | memoryview) -> MappedFile | None:
    """Return the mapped file that contains the bytes; None if they are not in a mapped file."""
    owner: object = data
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return owner if isinstance(owner, MappedFile) else None
