"""Cache of compiled kernels on disk; a warm start compiles nothing.

The files are machine code for this host, written by this user: a folder that other users may
write is not used. ``NPU_KERNEL_CACHE_DIR`` names the folder; empty disables the cache.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from driver_layer.support.files import content_digest, make_private

CACHE_VARIABLE = "NPU_KERNEL_CACHE_DIR"
_DIGEST_BYTES = 32

MOST_BYTES = 256 << 20
"""Limit of the cache: kernels of about a thousand models; the least recently read are evicted."""

_DAY = 24 * 60 * 60


class ObjectCache:
    """Object files by key.

    Args:
        folder: folder of the files; None stores nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder if folder is not None and make_private(folder) else None

    def read(self, key: str) -> bytes | None:
        """Return the object file stored under a key; None if it is missing or damaged."""
        if self._folder is None:
            return None
        path = self._folder / _name(key)
        try:
            content = path.read_bytes()
            if time.time() - path.stat().st_mtime > _DAY:
                os.utime(path)  # mark as recently read
        except OSError:
            return None
        digest, image = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        return image if content_digest([image]) == digest else None

    def write(self, key: str, image: bytes) -> None:
        """Store an object file; ignored if the disk is full or read-only."""
        if self._folder is None:
            return
        try:
            handle, name = tempfile.mkstemp(dir=self._folder)
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content_digest([image]) + image)
            os.replace(name, self._folder / _name(key))
        except OSError:
            Path(name).unlink(missing_ok=True)
        self._make_room()

    def _make_room(self) -> None:
        """Evict the oldest files down to half of the limit, if all files exceed it."""
        assert self._folder is not None
        with suppress(OSError):
            found = [(path, path.stat()) for path in self._folder.iterdir()]
            total = sum(status.st_size for _, status in found)
            if total <= MOST_BYTES:
                return
            for path, status in sorted(found, key=lambda one: one[1].st_mtime):
                if total <= MOST_BYTES // 2:
                    break
                path.unlink(missing_ok=True)
                total -= status.st_size


def default_folder() -> Path | None:
    """Return the folder of ``NPU_KERNEL_CACHE_DIR``; by default one in the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "npu-driver" / "kernels"
    except RuntimeError:  # the user has no home folder
        return None


@functools.cache
def source_digest() -> str:
    """Return a digest of the native engine's sources, which is a part of the cache keys."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:40] + ".o"
