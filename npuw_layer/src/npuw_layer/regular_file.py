"""Opens files that somebody names: a pipe or a device would keep its reader waiting for ever."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a file to read it.

    Raises:
        OSError: it cannot be opened, or is a folder, a pipe or a device.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except ValueError as error:
        raise no_name(path, error) from None
    try:
        check_regular(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def check_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    """See that what is there under a name is a file.

    Raises:
        OSError: it is a folder, a pipe or a device.
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "no regular file", path)


def no_name(path: str | os.PathLike[str], error: ValueError) -> OSError:
    """Say that Python hands no such name to the system: a NUL is in it, or half a character."""
    return OSError(errno.EINVAL, f"no file's name: {error}", path)
