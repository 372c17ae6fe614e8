"""Writes files whole or not at all: under another name first, beside their place."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from compiler_layer.errors import CompilerUsageError
from driver_layer.support.files import looking_at, place_of


def writing(path: Path) -> AbstractContextManager[None]:
    """Turn what the operating system says while a file or folder is written into one line.

    Raises:
        CompilerUsageError: it cannot be written.
    """
    return looking_at(path, CompilerUsageError)


@contextmanager
def scratch_folder(beside: Path) -> Generator[Path]:
    """Make a folder in the folder of a path, on the same file system; it goes in the end.

    Raises:
        CompilerUsageError: that folder does not exist or cannot be written to.
    """
    with writing(beside):
        made = tempfile.TemporaryDirectory(dir=beside.parent, prefix=f".{beside.name}.")
    with made as folder:
        yield Path(folder)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: where links lead to, with the mode of what was there.

    Raises:
        CompilerUsageError: it cannot be written, or what is there is no file, as a device is.
    """
    with writing(path):
        place, replaced = place_of(path)
    with scratch_folder(place) as scratch, writing(path):
        made = scratch / place.name
        made.write_bytes(data)
        if replaced is not None:
            made.chmod(replaced.st_mode & 0o777)
        made.replace(place)
