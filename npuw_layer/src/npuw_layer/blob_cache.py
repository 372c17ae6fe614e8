"""Compiled programs on disk: the second start compiles nothing.

A file is the program, its SHA-256 and a mark of eight bytes. It is written beside its final name
and then renamed, so that nobody ever reads half of one; a damaged one is compiled anew.
"""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from npuw_layer.errors import NpuwFault

_log = logging.getLogger(__name__)

_MARK = b"NPUWBLOB"
_TAIL = 32 + len(_MARK)


def cache_key(parts: Mapping[str, str]) -> str:
    """Join all that a program depends on to one name."""
    text = "\0".join(f"{name}={value}" for name, value in sorted(parts.items()))
    return hashlib.sha256(text.encode()).hexdigest()


def drop_pages(program: bytes | memoryview) -> None:
    """Take a mapped program that was loaded out of memory; what is looked at again comes back."""
    whole = program.obj if isinstance(program, memoryview) else None
    if isinstance(whole, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        whole.madvise(mmap.MADV_DONTNEED)


class BlobCache:
    """Programs in a folder.

    Args:
        folder: made if it is not there.

    Raises:
        NpuwFault: it cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NpuwFault(f"CACHE_DIR {folder}: {error.strerror}") from None

    def read(self, key: str) -> memoryview | None:
        """Give a program, mapped from its file, or None if there is none or it is damaged."""
        path = self._path(key)
        try:
            with path.open("rb") as file:
                content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError):
            return None
        program, tail = content[:-_TAIL], content[-_TAIL:]
        if bytes(tail) == hashlib.sha256(program).digest() + _MARK:
            return program
        _log.warning("%s is damaged; it is compiled anew", path)
        return None

    def write(self, key: str, program: bytes) -> None:
        """Keep a program; a full or read-only disk is not the caller's problem."""
        path = self._path(key)
        try:
            handle, name = tempfile.mkstemp(prefix=f".{key[:16]}-", dir=self._folder)
            temporary = Path(name)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(program)
                    file.write(hashlib.sha256(program).digest() + _MARK)
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        except OSError as error:
            _log.warning("CACHE_DIR %s: %s; nothing is kept", self._folder, error.strerror)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.blob"
