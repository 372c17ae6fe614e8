"""Reads numbers and texts one after the other from bytes that may be damaged."""

from __future__ import annotations

import struct

from npuw_layer.errors import DamagedBlob


class Cursor:
    """A place in bytes; what is read lies behind it.

    Args:
        data: the bytes, none of which is believed.
    """

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.position = 0

    @property
    def remaining(self) -> int:
        """Bytes that were not read yet."""
        return len(self._data) - self.position

    def number(self, code: str, what: str) -> int:
        """Read a little-endian number.

        Args:
            code: its type, as ``struct`` calls it.
            what: what errors call it.

        Raises:
            DamagedBlob: there are too few bytes.
        """
        size = struct.calcsize(f"<{code}")
        (found,) = struct.unpack(f"<{code}", self.bytes(size, what))
        return found

    def count(self, what: str, size: int) -> int:
        """Read how many things follow, a u64.

        Args:
            what: what errors call them.
            size: bytes that one of them has at least.

        Raises:
            DamagedBlob: there is no room for so many.
        """
        found = self.number("Q", f"the number of {what}")
        if found > self.remaining // size:
            raise DamagedBlob(f"{found} {what} do not fit the {self.remaining} bytes that are left")
        return found

    def bytes(self, size: int, what: str) -> bytes:
        """Read bytes.

        Raises:
            DamagedBlob: there are too few.
        """
        if size > self.remaining:
            raise DamagedBlob(
                f"{what} takes {size} bytes, {self.remaining} are left: it is cut off"
            )
        self.position += size
        return bytes(self._data[self.position - size : self.position])
