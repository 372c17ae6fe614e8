"""The folder where processes that share an arena meet.

It is private to the user. Each arena has a folder in it, with a socket for each process that serves
the arena. A process that looks for the arena, creates it or leaves it holds the folder's lock; the
kernel releases the lock when the process dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import tempfile
import time
import weakref
from collections.abc import Generator
from pathlib import Path

from npuw_layer.errors import SharingError

LOCK_SECONDS = 120.0
"""Seconds to wait for another process that copies weights."""

_POLL_SECONDS = 0.02


def private_folder() -> Path:
    """Return the folder of this user's sockets; create it if missing.

    Raises:
        SharingError: the folder cannot be created, was just removed, or is open to others; or no
            place for it exists.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and os.path.isdir(runtime):  # isdir raises nothing, even without access
        folder = Path(runtime) / "npuw"
    else:
        try:
            folder = Path(tempfile.gettempdir()) / f"npuw-{os.geteuid()}"
        except FileNotFoundError as error:
            raise SharingError(f"{error.strerror}; set XDG_RUNTIME_DIR") from None
    try:
        _make_private(folder)
    except FileNotFoundError as error:
        raise SharingError(f"{folder}: {error.strerror}") from None
    return folder


class Meeting:
    """The open folder of one arena; ``path`` names files in it.

    Args:
        folder: the folder's path; created if missing.

    Raises:
        FileNotFoundError: the last process to leave has just removed it; create it again.
        SharingError: the folder cannot be created or opened.
    """

    def __init__(self, folder: Path) -> None:
        _make_private(folder)
        self._folder = folder
        try:
            self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise SharingError(f"{folder}: {error.strerror}") from None
        self._closing = weakref.finalize(self, os.close, self._descriptor)
        _open.add(self)

    def path(self, name: str) -> str:
        """Return a path of a file in the folder that is short enough for a socket."""
        return f"/proc/self/fd/{self._descriptor}/{name}"

    def new_name(self) -> str:
        """Return a name that no other socket has, not even one of a process with the same id."""
        return f"{os.getpid()}-{secrets.token_hex(4)}.sock"

    def sockets(self) -> list[str]:
        """Return the names of all sockets, including those without a listener.

        Raises:
            SharingError: the folder is closed: this process left the arena, or its parent holds it.
        """
        if self._descriptor < 0:
            raise SharingError(f"{self._folder}: this process no longer serves weights there")
        try:
            return sorted(name for name in os.listdir(self._descriptor) if name.endswith(".sock"))
        except OSError as error:
            raise SharingError(f"{self._folder}: {error.strerror}") from None

    def remove(self, name: str) -> None:
        """Remove a socket; neither a missing one nor one that cannot be removed is an error."""
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._descriptor)

    def remove_if_empty(self) -> None:
        """Remove the folder if no process serves in it; the lock must be held."""
        if self.is_there():
            with contextlib.suppress(OSError):  # not empty
                self._folder.rmdir()

    def is_there(self) -> bool:
        """Return whether the folder's path still names the open folder."""
        mine = os.fstat(self._descriptor)
        with contextlib.suppress(OSError):
            return os.path.samestat(mine, os.lstat(self._folder))
        return False

    def try_lock(self) -> bool:
        """Take the lock if no process holds it; return whether this succeeded.

        Raises:
            SharingError: the file system does not support locks.
        """
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise SharingError(f"{self._folder} cannot be locked: {error.strerror}") from None
        return True

    def unlock(self) -> None:
        """Release the lock."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the folder, which also releases the lock; a second call does nothing."""
        self._descriptor = -1
        self._closing()


_open: weakref.WeakSet[Meeting] = weakref.WeakSet()


def _close_in_child() -> None:
    """Close all folders: a forked child would keep its parent's lock beyond the parent's death."""
    for meeting in list(_open):
        meeting.close()


os.register_at_fork(after_in_child=_close_in_child)


@contextlib.contextmanager
def locked_meeting(identity: str, seconds: float = LOCK_SECONDS) -> Generator[Meeting, None, None]:
    """Hold the lock of an arena's folder.

    The receiver of the folder closes it; otherwise it closes with the last reference to it.

    Raises:
        SharingError: another process holds the lock for longer than ``seconds``.
    """
    deadline = time.monotonic() + seconds
    folder = private_folder() / identity
    while True:
        try:
            meeting = Meeting(folder)
        except FileNotFoundError:
            continue  # another process removed the folder in between, so others make progress
        _wait(meeting, folder, deadline)
        if meeting.is_there():
            break
        meeting.close()  # the last process to leave has removed it
    try:
        yield meeting
    except BaseException:
        meeting.remove_if_empty()
        meeting.close()
        raise
    meeting.unlock()


def _wait(meeting: Meeting, folder: Path, deadline: float) -> None:
    while not meeting.try_lock():
        if time.monotonic() > deadline:
            meeting.close()
            raise SharingError(f"{folder}: another process holds the lock for too long")
        time.sleep(_POLL_SECONDS)


def _make_private(folder: Path) -> None:
    """Create a folder that only this user can access.

    Raises:
        FileNotFoundError: the folder was just removed.
        SharingError: the folder cannot be created, belongs to another user, or is open to others.
    """
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    except OSError as error:
        raise SharingError(f"{folder}: {error.strerror}") from None
    status = folder.lstat()
    private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    if not private or status.st_uid != os.geteuid():
        raise SharingError(f"{folder} is not private to this user; set its mode to 0700")
