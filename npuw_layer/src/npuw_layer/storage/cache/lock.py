"""File locks, which the system releases when their owner ends for any reason.

A lock file exists only during use: its owner deletes it before releasing the lock. So a process
that gets a lock checks that the path still names this file: the lock of a deleted file protects
nothing.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_log = logging.getLogger(__name__)

_OWNER = re.compile(r"(?P<pid>\d{1,10}) (?P<host>[\w.-]{1,64})\n")
_NEW_FILE = 0o666
"""Mode before the user's umask."""


class NoLocks(Exception):
    """Locking is impossible: a read-only folder, or a file system without locks."""


@contextmanager
def locked(path: Path, on_wait: Callable[[str], None]) -> Generator[bool, None, None]:
    """Hold a lock while the block runs; threads of one process exclude one another, too.

    Args:
        path: the lock's file, created if missing.
        on_wait: called with the owner's name before waiting for it.

    Yields:
        Whether the lock is held: False where locking is impossible. Then no process is excluded.
    """
    try:
        handle = _take(path, on_wait)
    except NoLocks as error:
        _log.debug("%s: %s; several processes may do the same work", path, error)
        yield False
        return
    try:
        with suppress(OSError):  # a full disk: then waiters name the owner "another process"
            os.truncate(handle, 0)
            os.write(handle, f"{os.getpid()} {socket.gethostname()}\n".encode())
        yield True
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(handle)


def remove_abandoned(path: Path) -> bool:
    """Delete a file unless it is locked; return whether it was deleted.

    Raises:
        NoLocks: locking is impossible.
        OSError: the file cannot be opened or deleted.
    """
    handle = os.open(path, os.O_RDWR)
    try:
        # Delete under the lock: no process can lock the file meanwhile and rely on it.
        gone = _lock(handle, wait=False) and is_at(handle, path)
        if gone:
            path.unlink()
        return gone
    finally:
        os.close(handle)


def hold(handle: int) -> None:
    """Lock an open file until it is closed; do nothing where locking is impossible."""
    with suppress(NoLocks):
        _lock(handle, wait=True)


def is_at(handle: int, path: Path) -> bool:
    """Return whether a path names this open file."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _take(path: Path, on_wait: Callable[[str], None]) -> int:
    """Open and lock the file at a path.

    Raises:
        NoLocks: locking is impossible; see ``locked``.
    """
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, _NEW_FILE)
        except OSError as error:
            raise NoLocks(error.strerror) from None
        try:
            if not _lock(handle, wait=False):
                on_wait(_owner(handle))
                _lock(handle, wait=True)
            if is_at(handle, path):
                return handle
        except NoLocks:
            with suppress(OSError):
                path.unlink()
            os.close(handle)
            raise
        except BaseException:  # Ctrl-C while waiting
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int, wait: bool) -> bool:
    """Lock an open file; return False if another owner holds it.

    Raises:
        NoLocks: the file system, or the operating system, does not support locks.
    """
    if sys.platform == "win32":
        raise NoLocks("not on this operating system")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        raise NoLocks(error.strerror) from None
    return True


def _owner(handle: int) -> str:
    """Return the lock's owner, as readable text; the file's content is not trusted."""
    with suppress(OSError, UnicodeDecodeError):
        found = _OWNER.fullmatch(os.pread(handle, 128, 0).decode())
        if found is not None:
            host = "" if found["host"] == socket.gethostname() else f" on {found['host']}"
            return f"process {found['pid']}{host}"
    return "another process"
