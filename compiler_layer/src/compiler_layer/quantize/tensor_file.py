"""File of quantized tensors; the graph's constants are views of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from compiler_layer.elements import Array, to_bytes
from compiler_layer.files import FileView
from compiler_layer.writers.files import writing


class TensorFile:
    """Appender of tensors to a file; the caller removes the file when it is no longer needed.

    Args:
        path: a file that does not exist yet.

    Raises:
        CompilerUsageError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with writing(path):
            self._path.touch(exist_ok=False)

    def append(self, element: str, blocks: Iterable[Array]) -> FileView:
        """Write a tensor, given in blocks; all but the last have an even number of elements.

        Raises:
            CompilerUsageError: the file cannot be written.
        """
        with writing(self._path), self._path.open("ab") as file:
            begin = file.tell()
            for block in blocks:
                file.write(to_bytes(block, element))
            return FileView(str(self._path), begin, file.tell() - begin, element)
