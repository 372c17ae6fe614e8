"""A cache of files on disk, bounded in bytes, for data that can be made again.

The files are this user's: a folder that other users may write is not used, and files of other names
in the folder are left alone. A file appears complete, and has a digest at its end: a damaged one
counts as missing.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

from driver_layer.support.files import content_digest, make_private, open_regular

_log = logging.getLogger(__name__)

_DIGEST_BYTES = 32
_UNFINISHED = ".tmp"


class FileCache:
    """Files by key; the least recently read ones are evicted. The class is thread-safe.

    Several processes may share the folder, and then exceed the limit for a moment.

    Args:
        folder: folder of the files; None stores nothing.
        limit: most bytes of all files together.
        suffix: end of the files' names, e.g. ".o".
    """

    def __init__(self, folder: Path | None, limit: int, suffix: str) -> None:
        self.folder = folder if folder is not None and make_private(folder) else None
        self.limit = limit
        self._suffix = suffix
        self._own = re.compile(rf"[0-9a-f]{{40}}{re.escape(suffix)}({re.escape(_UNFINISHED)}\w+)?")
        self._writing = threading.Lock()

    @property
    def used_bytes(self) -> int:
        """Bytes of all files together."""
        return sum(status.st_size for _, status in self._files())

    def read(self, key: str) -> memoryview | None:
        """Return the content stored under a key; None if it is missing or damaged."""
        if self.folder is None:
            return None
        path = self._path(key)
        try:
            with open_regular(path) as file:
                status = os.fstat(file.fileno())
                if status.st_size > self.limit:
                    return None
                whole = memoryview(file.read())
        except OSError:
            return None
        content, digest = whole[:-_DIGEST_BYTES], whole[-_DIGEST_BYTES:]
        if content_digest([content]) != bytes(digest):
            _log.warning("%s: the file is damaged; its content is made again", path)
            return None
        with suppress(OSError):  # mark as recently read
            os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))
        return content

    def write(self, key: str, content: bytes | memoryview) -> None:
        """Store content unless it exceeds the limit; a full or read-only disk is only logged."""
        size = len(content) + _DIGEST_BYTES
        if self.folder is None or size > self.limit:
            return
        path, name = self._path(key), None
        try:
            with self._writing:
                self._make_room(size, path)
                handle, name = tempfile.mkstemp(dir=self.folder, prefix=path.name + _UNFINISHED)
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.write(content_digest([content]))
                os.replace(name, path)
        except OSError as error:
            _log.warning("%s: %s; the content is not cached", path, error.strerror)
            if name is not None:
                Path(name).unlink(missing_ok=True)

    def _make_room(self, size: int, replaced: Path) -> None:
        """Evict files until another one of a size fits, which replaces the file of its path."""
        others = [(path, status) for path, status in self._files() if path != replaced]
        excess = size - self.limit + sum(status.st_size for _, status in others)
        for path, status in sorted(others, key=lambda one: one[1].st_atime_ns):
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= status.st_size

    def _files(self) -> Generator[tuple[Path, os.stat_result]]:
        """Iterate over the cache's files, also those that killed processes left unfinished."""
        if self.folder is None:
            return
        with suppress(OSError):
            for path in self.folder.iterdir():
                if self._own.fullmatch(path.name):
                    with suppress(FileNotFoundError):  # another process evicted the file
                        yield path, path.stat()

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / (hashlib.sha256(key.encode()).hexdigest()[:40] + self._suffix)
