"""Weights of an IR: its ``.bin`` file, or bytes in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from compiler_layer.files import FileView, MemoryView


class Weights(Protocol):
    """Bytes that the constants of an IR refer to."""

    @property
    def name(self) -> str:
        """Name in errors."""
        ...

    @property
    def size(self) -> int:
        """Number of bytes."""
        ...

    def view(self, offset: int, size: int, element: str) -> FileView:
        """Return a view of some bytes as elements of a type."""
        ...


class FileWeights:
    """Weights in a file; a missing file counts as empty.

    Args:
        path: the ``.bin``.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.size = path.stat().st_size if path.is_file() else 0

    def view(self, offset: int, size: int, element: str) -> FileView:
        """Return a view of the file."""
        return FileView(self.name, offset, size, element)


@dataclass(frozen=True, slots=True)
class MemoryWeights:
    """Weights in memory."""

    name: str
    buffer: memoryview

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self.buffer)

    def view(self, offset: int, size: int, element: str) -> FileView:
        """Return a view of the buffer."""
        return MemoryView(self.name, offset, size, element, self.buffer)
