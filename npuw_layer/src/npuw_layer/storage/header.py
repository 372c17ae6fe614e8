"""Headers of untrusted files: a magic, a version of the format, sizes and digests."""

from __future__ import annotations

import struct
from typing import Any

from npuw_layer.errors import BlobVersionError, DamagedBlob


class HeaderFormat:
    """The format of a header: the magic, two u16 of the version, and further fields.

    Args:
        magic: first bytes.
        version: major and minor; another version is rejected.
        fields: the further fields, as format characters of ``struct``.
        what: the format's name in errors.
    """

    def __init__(self, magic: bytes, version: tuple[int, int], fields: str, what: str) -> None:
        self.magic = magic
        self._version = version
        self._what = what
        self._struct = struct.Struct(f"<{len(magic)}sHH{fields}")

    @property
    def size(self) -> int:
        """Bytes of a header."""
        return self._struct.size

    def begins(self, data: memoryview) -> bool:
        """Return whether bytes begin with the magic."""
        return bytes(data[: len(self.magic)]) == self.magic

    def pack(self, *fields: object) -> bytes:
        """Return a header of this version."""
        return self._struct.pack(self.magic, *self._version, *fields)

    def unpack(self, data: memoryview) -> tuple[Any, ...]:
        """Return the further fields of a header that begins with the magic.

        Raises:
            DamagedBlob: too few bytes.
            BlobVersionError: the format has another version.
        """
        if len(data) < self.size:
            raise DamagedBlob(f"{len(data)} bytes are too few for a header of {self.size}")
        _, major, minor, *fields = self._struct.unpack_from(data)
        if (major, minor) != self._version:
            ours = "{}.{}".format(*self._version)
            raise BlobVersionError(self._what, f"{major}.{minor}", ours)
        return tuple(fields)
