"""Writer of an IR's ``.bin``: constants one after another, copied from their files.

Values pass through memory a block at a time, so that a model may be larger than the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.constant_value import Inline
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import to_bytes
from compiler_layer.files import FileView
from compiler_layer.writers.stored_values import read_blocks, read_bytes

_ALIGNMENT = 64
"""Alignment in bytes: a cache line, so that a mapped file can be loaded into vectors."""

_BLOCK_BYTES = 4 << 20

Advance = Callable[[int], object]
"""Progress callback, called repeatedly with the amount done since the last call."""


class WeightsWriter:
    """Appender of constants to a file; equal constants are stored once.

    Args:
        file: the ``.bin``, at its beginning.
        advance: called with the bytes of each constant done, whether written or already present.
    """

    def __init__(self, file: BinaryIO, advance: Advance) -> None:
        self._file = file
        self._advance = advance
        self._end = 0
        self._places: dict[tuple[FileView, str] | bytes, int] = {}

    def add(self, constant: Constant) -> tuple[int, int]:
        """Write a constant unless it is present; return its offset and its size.

        Raises:
            BadModel: the constant's file cannot be read, or ends before the constant does.
            OSError: the ``.bin`` cannot be written.
        """
        key = _identity(constant)
        size = constant.nbytes
        if key in self._places:
            self._advance(size)
        else:
            self._pad(-self._end % _ALIGNMENT)
            self._places[key] = self._end
            self._append(constant)
            if size == 0:
                self._pad(1)
        # OpenVINO expects one byte for a constant without elements.
        return self._places[key], max(size, 1)

    def _pad(self, count: int) -> None:
        self._file.write(bytes(count))
        self._end += count

    def _append(self, constant: Constant) -> None:
        element, held = element_of(constant.output), constant.held
        if isinstance(held, Inline) or held.element != element:
            for values in read_blocks(constant, element):
                self._write(to_bytes(values, element))
        else:
            for data in read_bytes(held, _BLOCK_BYTES):
                self._write(data)

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._end += len(data)
        self._advance(len(data))


def _identity(constant: Constant) -> tuple[FileView, str] | bytes:
    """Return a key that only equal bytes share, without reading the constant's file."""
    element = element_of(constant.output)
    held = constant.held
    return to_bytes(constant.load(), element) if isinstance(held, Inline) else (held, element)
