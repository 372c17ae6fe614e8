"""Files that appear completely, or not at all.

A file is written under a temporary name, then renamed. It is locked during the write: an unlocked
temporary file was left by a killed process, and the next start deletes it.

As with writing in place, a link stays and its target is replaced, and a replaced file keeps its
mode and its owner. A path that is not a regular file (a pipe, a device) is rejected.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from driver_layer.support.files import place_of
from npuw_layer.storage.cache.lock import NoLocks, hold, is_at, remove_abandoned

TEMPORARY = ".tmp"
LOCK = ".lock"

_TEMPORARY_NAME = re.compile(r"\.(?P<of>.+)-[0-9a-f]{8}\.tmp", re.DOTALL)
_LOCK_NAME = re.compile(r"(?P<of>.+)\.lock", re.DOTALL)

_NEW_FILE = 0o666
"""Mode before the user's umask."""
_OWNERS_ALONE = 0o600
"""Mode until the file is complete: the replaced file may have been private."""

_FORGOTTEN = 24 * 60 * 60
"""Age in seconds at which a temporary file counts as abandoned, where locking is impossible."""


@contextmanager
def replacing(
    path: Path, on_replaced: Callable[[os.stat_result], None] | None = None
) -> Generator[BinaryIO, None, None]:
    """Write a file that replaces the one at a path when the block ends without an error.

    The bytes reach the disk before the name: after a power cut the path names the old file or the
    new one, never a name without bytes. The rename itself may be lost, which is harmless.

    Args:
        path: the final name, in a folder that exists.
        on_replaced: called with the new file's status.

    Raises:
        OSError: the disk is full, the folder is read-only, or the path is not a regular file.
    """
    path, replaced = place_of(path)
    handle, temporary = _make(path, _NEW_FILE if replaced is None else _OWNERS_ALONE)
    file = os.fdopen(handle, "wb")
    try:
        yield file
        file.flush()
        if replaced is not None:
            _take_over(handle, replaced)
        os.fsync(handle)
        if sys.platform == "win32":  # Windows cannot rename an open file
            file.close()
        temporary.replace(path)
        if on_replaced is not None:
            on_replaced(path.stat() if file.closed else os.fstat(handle))
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    finally:
        with suppress(OSError):  # a failed flush: its error is already raised
            file.close()


def lock_of(path: Path) -> Path:
    """Return the lock file of a path, held by the process that writes the file."""
    return path.with_name(path.name + LOCK)


def remove_leftovers(folder: Path, ours: Callable[[str], object], locks: bool = True) -> list[Path]:
    """Delete and return files that killed processes left in a folder, which may hold other files.

    Args:
        folder: the folder to clean.
        ours: returns whether this package writes files of a name.
        locks: whether lock files are among them.
    """
    removed: list[Path] = []
    for path in folder.iterdir():
        found = _TEMPORARY_NAME.fullmatch(path.name)
        if found is None and locks:
            found = _LOCK_NAME.fullmatch(path.name)
        if found is not None and ours(found["of"]):
            with suppress(OSError):  # another process may clean up at the same time
                if _remove_if_left(path):
                    removed.append(path)
    return removed


def _make(path: Path, mode: int) -> tuple[int, Path]:
    """Create a locked temporary file for a path's new content."""
    while True:
        temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}{TEMPORARY}")
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        hold(handle)
        if is_at(handle, temporary):  # no cleanup deleted it before it was locked
            return handle, temporary
        os.close(handle)


def _take_over(handle: int, replaced: os.stat_result) -> None:
    """Copy mode and owner of the replaced file to the new one, as far as permitted."""
    if sys.platform == "win32":
        return
    mode = replaced.st_mode & 0o777
    with suppress(OSError):  # only root may change owners
        os.fchown(handle, replaced.st_uid, -1)
    try:
        os.fchown(handle, -1, replaced.st_gid)
    except OSError:  # the group differs now: it gets only the rights of other users
        mode = mode & ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    with suppress(OSError):  # a file system without modes
        os.fchmod(handle, mode)


def _remove_if_left(path: Path) -> bool:
    try:
        return remove_abandoned(path)
    except NoLocks:
        left = time.time() - path.stat().st_mtime > _FORGOTTEN
        if left:
            path.unlink()
        return left
