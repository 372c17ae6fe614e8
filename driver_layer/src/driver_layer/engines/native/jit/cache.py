"""Cache of compiled kernels on disk; a warm start compiles nothing.

The files are machine code for this host, written by this user: a folder that other users may
write is not used. ``NPU_KERNEL_CACHE_DIR`` names the folder; empty disables the cache.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

from driver_layer.support.file_cache import FileCache

CACHE_VARIABLE = "NPU_KERNEL_CACHE_DIR"

MOST_BYTES = 256 << 20
"""Limit of the cache: kernels of about a thousand models."""


class ObjectCache(FileCache):
    """Object files by key.

    Args:
        folder: folder of the files; None stores nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        super().__init__(folder, MOST_BYTES, ".o")


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
