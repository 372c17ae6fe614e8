"""Digests of known files, stored with the cached programs.

Reading a gigabyte takes most of a second, so a file's digest is stored together with the file
system's record of the file: change time, size and identity. If the record is unchanged, so is the
content. A file changed just now is always read, because its time might not show a further change.
Not detected: a disk that returns other bytes than were written, without a write.
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
from npuw_layer.storage.memory_model import model_in

_SETTLED_NS = 2_000_000_000
"""Minimum age of a change: a file system may count time in steps of two seconds."""

_SECOND_NS = 1_000_000_000

Seen = tuple[int, int, int, int, int]
"""File system's record of a file: device, inode, bytes, times of modification and change (ns)."""


class _Kept(BaseModel):
    """Content of a digest file."""

    file: Seen
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    check: str
    """Check of both: a damaged digest file would give a file the identity of another."""

    @property
    def expected(self) -> str:
        """Check of the current fields."""
        return content_digest([repr((self.file, self.sha256)).encode()]).hex()


class KnownFiles:
    """Digests of known files.

    Args:
        folder: folder of the digests; None stores none.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def recall(self, file: Path, status: os.stat_result) -> str | None:
        """Return a file's known digest; None if the file may have changed since."""
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
        """Keep the digest of a file whose status was the same before and after reading."""
        if time.time_ns() - max(seen(status)[-2:]) > _SETTLED_NS:
            self._write(file, status, digest)

    def learn_own(self, file: Path, status: os.stat_result, digest: str) -> None:
        """Keep the digest of a file that this process alone has just written."""
        # With times in whole seconds, a further change might look the same.
        if status.st_ctime_ns % _SECOND_NS:
            self._write(file, status, digest)

    def _write(self, known: Path, status: os.stat_result, digest: str) -> None:
        """Write a digest file; a full or read-only disk is not an error."""
        place = self._place(known)
        if place is not None:
            kept = _Kept(file=seen(status), sha256=digest, check="")
            kept = kept.model_copy(update={"check": kept.expected})
            with suppress(OSError), replacing(place) as file:
                file.write(kept.model_dump_json().encode())

    def _place(self, file: Path) -> Path | None:
        if self._folder is None or model_in(file.parent) is not None:
            return None  # a model in memory has new files each time
        name = hashlib.sha256(os.fsencode(file.resolve())).hexdigest()
        return self._folder / f"{name[:32]}.digest"


def seen(status: os.stat_result) -> Seen:
    """Return the fields of a file's status that change with its content."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
