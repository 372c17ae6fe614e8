"""Atomic writing of files: under a temporary name in the same folder, then renamed."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from compiler_layer.errors import CompilerUsageError
from driver_layer.support.files import looking_at, place_of


def writing(path: Path) -> AbstractContextManager[None]:
    """Turn an operating system error during writing into one line.

    Raises:
        CompilerUsageError: the file or folder cannot be written.
    """
    return looking_at(path, CompilerUsageError)


@contextmanager
def scratch_folder(beside: Path) -> Generator[Path]:
    """Create a temporary folder in the folder of a path, on the same file system.

    Raises:
        CompilerUsageError: that folder does not exist or cannot be written to.
    """
    with writing(beside):
        made = tempfile.TemporaryDirectory(dir=beside.parent, prefix=f".{beside.name}.")
    with made as folder:
        yield Path(folder)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file completely or not at all; follow links, and keep an existing file's mode.

    Raises:
        CompilerUsageError: the file cannot be written, or is not a regular file (e.g. a device).
    """
    with writing(path):
        place, replaced = place_of(path)
    with scratch_folder(place) as scratch, writing(path):
        made = scratch / place.name
        made.write_bytes(data)
        if replaced is not None:
            made.chmod(replaced.st_mode & 0o777)
        made.replace(place)
