"""Reader of numbers and texts from bytes that may be damaged."""

from __future__ import annotations

import struct

from npuw_layer.errors import DamagedBlob


class Cursor:
    """A position in bytes, from which the next read begins.

    Args:
        data: the bytes, which are not trusted.
    """

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.position = 0

    @property
    def remaining(self) -> int:
        """Bytes that remain to be read."""
        return len(self._data) - self.position

    def number(self, code: str, what: str) -> int:
        """Read a little-endian number.

        Args:
            code: format character of ``struct``.
            what: the number's name in errors.

        Raises:
            DamagedBlob: too few bytes remain.
        """
        size = struct.calcsize(f"<{code}")
        (found,) = struct.unpack(f"<{code}", self.bytes(size, what))
        return found

    def count(self, what: str, size: int) -> int:
        """Read the number of items that follow, a u64.

        Args:
            what: the items' name in errors.
            size: minimum bytes of an item.

        Raises:
            DamagedBlob: the remaining bytes cannot hold this number of items.
        """
        found = self.number("Q", f"the number of {what}")
        if found > self.remaining // size:
            raise DamagedBlob(f"{found} {what} do not fit {self.remaining} remaining bytes")
        return found

    def bytes(self, size: int, what: str) -> bytes:
        """Read bytes.

        Raises:
            DamagedBlob: too few bytes remain.
        """
        if size > self.remaining:
            raise DamagedBlob(f"{what} takes {size} bytes, {self.remaining} remain: truncated")
        self.position += size
        return bytes(self._data[self.position - size : self.position])
