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
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "no regular file", path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
