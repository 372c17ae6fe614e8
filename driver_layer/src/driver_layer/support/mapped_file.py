"""Files that are mapped to be read in place, and what may become of them meanwhile.

A file that is truncated where it lies takes its pages along, and to look at these ends the process
(SIGBUS). Nobody can keep others from that, but who is about to read can see first whether it was.
"""

from __future__ import annotations

import errno
import mmap
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt


class Truncated(OSError):
    """A file has fewer bytes than when it was mapped; nothing else is taken for it."""


class MappedFile(mmap.mmap):
    """A whole file, read-only; it may be closed."""

    name: str

    @staticmethod
    def of(file: BinaryIO) -> MappedFile:
        """Map an open file, which has bytes.

        Raises:
            OSError, ValueError: it cannot be mapped.
        """
        made = MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
        made.name = str(file.name)  # of a bare descriptor it is a number
        return made

    def check(self) -> None:
        """See that the file has all the bytes that it had; costs one call of the system.

        Raises:
            Truncated: it has fewer.
        """
        before, now = len(self), self.size()
        if now < before:
            problem = f"was truncated from {before} to {now} bytes while it is in use"
            raise Truncated(errno.EIO, problem, self.name)


def mapped_file_of(data: npt.NDArray[Any] | bytes | memoryview) -> MappedFile | None:
    """Give the file that bytes are mapped from; None if they are from none."""
    owner: object = data
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return owner if isinstance(owner, MappedFile) else None
