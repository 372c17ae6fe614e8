"""Files that somebody names: a pipe or a device would keep its reader waiting for ever.

Nor is one replaced by what is written.

All layers read through here; none of them has it as its own.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a file to read it.

    Raises:
        OSError: it cannot be opened, or is a folder, a pipe or a device.
    """
    try:
        return io.BufferedReader(io.FileIO(path, opener=_open))
    except ValueError as error:
        raise no_name(path, error) from None


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Read a whole file; errors as ``open_regular``."""
    with open_regular(path) as file:
        return file.read()


def check_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    """See that what is there under a name is a file.

    Raises:
        OSError: it is a folder, a pipe or a device.
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "no regular file", path)


def place_of(path: Path) -> tuple[Path, os.stat_result | None]:
    """Give where a file is that is written to: what links lead to; and what is there now, if any.

    Raises:
        OSError: it is no regular file, links lead in circles, or it cannot be looked at.
    """
    status = None
    try:
        # Before links are read: the system follows none that others left in a folder for all.
        status = path.stat()
        check_regular(status, path)
    except FileNotFoundError:
        pass  # nor may be what a link names
    except ValueError as error:
        raise no_name(path, error) from None
    return Path(os.path.realpath(path)), status


def no_name(path: str | os.PathLike[str], error: ValueError) -> OSError:
    """Say that Python hands no such name to the system: a NUL is in it, or half a character."""
    return OSError(errno.EINVAL, f"no file's name: {error}", path)


def _open(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    try:
        check_regular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
