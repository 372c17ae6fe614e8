"""Files that users name: only regular files are opened, errors take one line, digests find damage.

Reading a pipe or a device could block indefinitely; writing never replaces one.
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
    """Open a file for reading.

    Raises:
        OSError: the file cannot be opened, or is a folder, a pipe or a device.
    """
    try:
        return io.BufferedReader(io.FileIO(path, opener=_open))
    except ValueError as error:
        raise no_name(path, error) from None


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Read a complete file; raises as ``open_regular``."""
    with open_regular(path) as file:
        return file.read()


def check_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    """Check that a status is that of a regular file.

    Raises:
        OSError: it is the status of a folder, a pipe or a device.
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)


def place_of(path: Path) -> tuple[Path, os.stat_result | None]:
    """Return the path to write to, with links resolved, and the status of the file there, if any.

    Raises:
        OSError: the file is not a regular one, the links form a loop, or stat fails.
    """
    status = None
    try:
        # Before links are resolved: the system follows no links of others in a shared folder.
        status = path.stat()
        check_regular(status, path)
    except FileNotFoundError:
        pass  # a link may name a missing file
    except ValueError as error:
        raise no_name(path, error) from None
    return Path(os.path.realpath(path)), status


def no_name(path: str | os.PathLike[str], error: ValueError) -> OSError:
    """Return the error of a name that Python rejects: it has a NUL or half a character."""
    return OSError(errno.EINVAL, f"not a file name: {error}", path)


@contextmanager
def looking_at(
    path: str | os.PathLike[str], refused: Callable[[str], Exception]
) -> Generator[None]:
    """Convert the system's errors about a path into one-line errors of a layer.

    Queries fail, too: in a folder without permission, and for a name that is too long, the system
    does not report whether the file exists (``Path.exists`` raises).

    Args:
        path: the path that the block queries, reads or writes.
        refused: returns the error with a given message.

    Raises:
        Exception: the result of ``refused``: the system rejects the path.
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
    """Return the SHA-256 of content given in parts; its reader checks that the content is complete.

    The digest detects damage, not forgery: an author of changes can change the digest, too.
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


def make_private(folder: Path) -> bool:
    """Create the folder; return whether only this user may write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError:
        return False
    if os.name != "posix":
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
