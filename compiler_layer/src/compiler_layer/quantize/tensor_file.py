"""A file that quantised tensors are put in, so that the graph's constants can be views of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from compiler_layer.elements import Array, to_bytes
from compiler_layer.files import FileView
from compiler_layer.writers.files import writing


class TensorFile:
    """Appends tensors to a file; who made it removes it when the model is written or forgotten.

    Args:
        path: a file that is not there yet.

    Raises:
        CompilerUsageError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with writing(path):
            self._path.touch(exist_ok=False)

    def append(self, element: str, blocks: Iterable[Array]) -> FileView:
        """Write a tensor, given in blocks of an even number of elements but for the last.

        Raises:
            CompilerUsageError: it cannot be written.
        """
        with writing(self._path), self._path.open("ab") as file:
            begin = file.tell()
            for block in blocks:
                file.write(to_bytes(block, element))
            return FileView(str(self._path), begin, file.tell() - begin, element)
