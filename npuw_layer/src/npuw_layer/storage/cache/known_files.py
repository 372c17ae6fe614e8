"""Digests of files that are known already, kept beside the programs.

Reading a gigabyte takes most of a second, so what was found out about a file is kept together with
what the file system says of it: when it was changed, how large it is, and which it is. If that is
as it was, so is the content. A file that was changed just now is read each time, as one more change
might not be seen by its time. What this cannot see: a disk that gives back other bytes than were
written, while nobody writes.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from driver_layer.support.files import content_digest, read_regular
from npuw_layer.storage.cache.replace import replacing

_SETTLED_NS = 2_000_000_000
"""A file system may count time in steps of two seconds."""

_SECOND_NS = 1_000_000_000

Seen = tuple[int, int, int, int, int]
"""What the file system says of a file: device, inode, bytes, and when it was changed, twice."""


class _Kept(BaseModel):
    """A file of the folder."""

    file: Seen
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    check: str
    """Of both: one that is damaged would give a file the identity of another."""

    @property
    def expected(self) -> str:
        """The check of what is kept now."""
        return content_digest([repr((self.file, self.sha256)).encode()]).hex()


class KnownFiles:
    """What is known of files.

    Args:
        folder: where it is kept; None keeps nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def recall(self, file: Path, status: os.stat_result) -> str | None:
        """Give the digest that is known of a file; None if it may have changed since."""
        place = self._place(file)
        if place is None:
            return None
        try:
            kept = _Kept.model_validate_json(read_regular(place))
        except (OSError, ValidationError):
            return None
        whole = kept.check == kept.expected
        return kept.sha256 if whole and kept.file == seen(status) else None

    def learn(self, file: Path, status: os.stat_result, digest: str) -> None:
        """Keep what was read in a file whose status was this before and after."""
        if time.time_ns() - max(seen(status)[-2:]) > _SETTLED_NS:
            self._write(file, status, digest)

    def learn_own(self, file: Path, status: os.stat_result, digest: str) -> None:
        """Keep what was written to a file just now, by us alone."""
        # Where time is counted in whole seconds, one more change might look the same.
        if status.st_ctime_ns % _SECOND_NS:
            self._write(file, status, digest)

    def _write(self, known: Path, status: os.stat_result, digest: str) -> None:
        """A disk that is full or read-only keeps none."""
        place = self._place(known)
        if place is not None:
            kept = _Kept(file=seen(status), sha256=digest, check="")
            kept = kept.model_copy(update={"check": kept.expected})
            with suppress(OSError), replacing(place) as file:
                file.write(kept.model_dump_json().encode())

    def _place(self, file: Path) -> Path | None:
        if self._folder is None:
            return None
        name = hashlib.sha256(os.fsencode(file.resolve())).hexdigest()
        return self._folder / f"{name[:32]}.digest"


def seen(status: os.stat_result) -> Seen:
    """Take from a file's status what changes with its content."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
