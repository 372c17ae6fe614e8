"""Files that users name: opened as regular files alone, refused in one line, checked for damage.

A pipe or a device would keep its reader waiting for ever; nor does writing replace one.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
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
    """Check that a status is that of a regular file.

    Raises:
        OSError: it is a folder, a pipe or a device.
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "no regular file", path)


def place_of(path: Path) -> tuple[Path, os.stat_result | None]:
    """Return where to write a file, links followed, and the status of the file there, if any.

    Raises:
        OSError: it is no regular file, links lead in circles, or it cannot be looked at.
    """
    status = None
    try:
        # Before links are read: the system follows none that others left in a shared folder.
        status = path.stat()
        check_regular(status, path)
    except FileNotFoundError:
        pass  # a link may name a file that is not there
    except ValueError as error:
        raise no_name(path, error) from None
    return Path(os.path.realpath(path)), status


def no_name(path: str | os.PathLike[str], error: ValueError) -> OSError:
    """Return the error of a name that Python does not pass on: with a NUL, or half a character."""
    return OSError(errno.EINVAL, f"no file's name: {error}", path)


@contextmanager
def looking_at(
    path: str | os.PathLike[str], refused: Callable[[str], Exception]
) -> Generator[None]:
    """Turn the system's errors about a path into one line of a layer's own error.

    Questions fail, too: in a folder without permission, and of a name that is too long, the system
    does not even tell whether there is a file (``Path.exists`` raises).

    Args:
        path: looked at, read or written.
        refused: makes the error of a line.

    Raises:
        Exception: what ``refused`` makes: the system refuses the path.
    """
    try:
        yield
    except OSError as error:
        raise refused(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        if _may_be_a_name(path):  # the error is about something else
            raise
        raise refused(f"{str(path)!r} cannot be a path: {error}") from None


def content_digest(pieces: Iterable[bytes | memoryview]) -> bytes:
    """Return the SHA-256 of content in pieces, by which its reader knows that it is whole.

    The digest tells damage, not forgery: whoever changes content can change its digest.
    """
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(piece)
    return whole.digest()


def _open(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    try:
        check_regular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _may_be_a_name(path: str | os.PathLike[str]) -> bool:
    """Return whether a text can be a file name, e.g. has no null character."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False
