"""Writes files whole or not at all: under another name first, beside their place."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from compiler_layer.errors import CompilerUsageError
from compiler_layer.paths import looking_at


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
    """Write a file whole or not at all.

    Raises:
        CompilerUsageError: it cannot be written.
    """
    with scratch_folder(path) as scratch, writing(path):
        (scratch / path.name).write_bytes(data)
        (scratch / path.name).replace(path)
