"""Files that are there whole, or not at all.

A file is written beside its final name and then renamed. While it is written it is locked: what
lies there unlocked was left by somebody who was killed, and the next start deletes it.

As if it had been written in place, a link stays and its target is replaced, a file that is replaced
keeps its mode and its owner, and what is no file (a pipe, a device) is refused.
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
"""Less what the user's umask takes away."""
_OWNERS_ALONE = 0o600
"""Until it is whole: what is replaced may have been private."""

_FORGOTTEN = 24 * 60 * 60
"""Seconds after which nobody is still writing, where locks cannot tell."""


@contextmanager
def replacing(
    path: Path, on_replaced: Callable[[os.stat_result], None] | None = None
) -> Generator[BinaryIO, None, None]:
    """Write a file that replaces the one at a path when the block ends without an error.

    The bytes are on the disk before the name is: after a power cut there is the old file or the
    new one, never a name without bytes. That the name itself may be lost does no harm.

    Args:
        path: the final name, in a folder that exists.
        on_replaced: called with what the file system says of the new file.

    Raises:
        OSError: the disk is full, the folder is read-only, or what is there is no regular file.
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
        if sys.platform == "win32":  # where an open file cannot be renamed
            file.close()
        temporary.replace(path)
        if on_replaced is not None:
            on_replaced(path.stat() if file.closed else os.fstat(handle))
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    finally:
        with suppress(OSError):  # what could not be flushed: the error is on its way already
            file.close()


def lock_of(path: Path) -> Path:
    """Give the file that is locked by whoever makes the one at a path."""
    return path.with_name(path.name + LOCK)


def remove_leftovers(folder: Path, ours: Callable[[str], object], locks: bool = True) -> list[Path]:
    """Delete what killed processes left in a folder, which may hold files of others; give it.

    Args:
        folder: where to look.
        ours: tells the names of the files that we write.
        locks: whether these have locks.
    """
    removed: list[Path] = []
    for path in folder.iterdir():
        found = _TEMPORARY_NAME.fullmatch(path.name)
        if found is None and locks:
            found = _LOCK_NAME.fullmatch(path.name)
        if found is not None and ours(found["of"]):
            with suppress(OSError):  # others clean up, too
                if _remove_if_left(path):
                    removed.append(path)
    return removed


def _make(path: Path, mode: int) -> tuple[int, Path]:
    """Make a locked file for the content that a path is to have."""
    while True:
        temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}{TEMPORARY}")
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        hold(handle)
        if is_at(handle, temporary):  # nobody took it for a leftover before it was locked
            return handle, temporary
        os.close(handle)


def _take_over(handle: int, replaced: os.stat_result) -> None:
    """Give a new file the mode and the owner of the one it replaces, as far as that is allowed."""
    if sys.platform == "win32":
        return
    mode = replaced.st_mode & 0o777
    with suppress(OSError):  # only root gives files away
        os.fchown(handle, replaced.st_uid, -1)
    try:
        os.fchown(handle, -1, replaced.st_gid)
    except OSError:  # others than before are its group: they may do what all may
        mode = mode & ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    with suppress(OSError):  # a file system that has no modes
        os.fchmod(handle, mode)


def _remove_if_left(path: Path) -> bool:
    try:
        return remove_abandoned(path)
    except NoLocks:
        left = time.time() - path.stat().st_mtime > _FORGOTTEN
        if left:
            path.unlink()
        return left
