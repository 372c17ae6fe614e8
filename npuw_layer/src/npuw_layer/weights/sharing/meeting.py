"""The folder where processes that share an arena meet.

It is private to the user, and has a folder for each arena, with a socket for each process that
serves it. Who looks for the arena, makes it or leaves it holds the folder's lock, which the kernel
takes back from whoever dies.
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
"""How long to wait for another process that copies weights."""

_POLL_SECONDS = 0.02


def private_folder() -> Path:
    """Give the folder of this user's sockets, made if it is not there.

    Raises:
        SharingError: it cannot be made, is removed just now, or others can reach it; or there is no
            place for it.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and os.path.isdir(runtime):  # which raises nothing, whoever closed it to us
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
    """The folder of one arena, open; ``path`` names what is in it.

    Args:
        folder: where it is made if it is not there.

    Raises:
        FileNotFoundError: who left last has removed it just now; it is to be made anew.
        SharingError: it cannot be made or opened.
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
        """Name a file in the folder, by a path that is short enough for a socket."""
        return f"/proc/self/fd/{self._descriptor}/{name}"

    def new_name(self) -> str:
        """Give a name that no other socket has, not even one of a process with our number."""
        return f"{os.getpid()}-{secrets.token_hex(4)}.sock"

    def sockets(self) -> list[str]:
        """Give the names of all sockets, those that nobody listens at among them.

        Raises:
            SharingError: the folder was closed: the arena was left, or is a parent process's.
        """
        if self._descriptor < 0:
            raise SharingError(f"{self._folder}: this process serves no weights there any more")
        try:
            return sorted(name for name in os.listdir(self._descriptor) if name.endswith(".sock"))
        except OSError as error:
            raise SharingError(f"{self._folder}: {error.strerror}") from None

    def remove(self, name: str) -> None:
        """Remove a socket; it may be gone, and what cannot be removed stays."""
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._descriptor)

    def remove_if_empty(self) -> None:
        """Remove the folder if nobody serves here; the lock is held."""
        if self.is_there():
            with contextlib.suppress(OSError):  # it is not empty
                self._folder.rmdir()

    def is_there(self) -> bool:
        """Whether the open folder is still the one of its name."""
        mine = os.fstat(self._descriptor)
        with contextlib.suppress(OSError):
            return os.path.samestat(mine, os.lstat(self._folder))
        return False

    def try_lock(self) -> bool:
        """Take the lock if nobody has it.

        Raises:
            SharingError: the file system has no locks.
        """
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise SharingError(f"{self._folder} cannot be locked: {error.strerror}") from None
        return True

    def unlock(self) -> None:
        """Give the lock to who waits."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the folder, and with it give back the lock; a second call does nothing."""
        self._descriptor = -1
        self._closing()


_open: weakref.WeakSet[Meeting] = weakref.WeakSet()


def _close_in_child() -> None:
    """A forked child would keep its parent's lock beyond the parent's death."""
    for meeting in list(_open):
        meeting.close()


os.register_at_fork(after_in_child=_close_in_child)


@contextlib.contextmanager
def locked_meeting(identity: str, seconds: float = LOCK_SECONDS) -> Generator[Meeting, None, None]:
    """Hold the lock of an arena's folder.

    The folder is closed by whoever it is handed to; if by nobody, when nobody refers to it.

    Raises:
        SharingError: others hold the lock for longer than ``seconds``.
    """
    deadline = time.monotonic() + seconds
    folder = private_folder() / identity
    while True:
        try:
            meeting = Meeting(folder)
        except FileNotFoundError:
            continue  # others came and left between two lines of ours: so it goes on somewhere
        _wait(meeting, folder, deadline)
        if meeting.is_there():
            break
        meeting.close()  # who left last has removed it
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
    """Make a folder that nobody else can look into.

    Raises:
        FileNotFoundError: somebody has removed it just now.
        SharingError: it cannot be made, or is another user's, or open to others.
    """
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    except OSError as error:
        raise SharingError(f"{folder}: {error.strerror}") from None
    status = folder.lstat()
    private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    if not private or status.st_uid != os.geteuid():
        raise SharingError(f"{folder} is not a private folder of this user (mode 0700)")
