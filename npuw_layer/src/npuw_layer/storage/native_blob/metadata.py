"""Metadata of a native blob's payload, in versions 2.0 to 2.7 of OpenVINO's NPU plugin.

Each minor version appends fields to those of the previous one, so the number determines the fields;
another major version has another order. So fields are a table here, with a row for each version.
Reading or writing a version iterates over the table's first rows.

Source: metadata.cpp and metadata.hpp of OpenVINO's NPU plugin (layouts, and the encoding of absent
values); the release 2026.4.1 has the same eight versions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from npuw_layer.errors import BlobVersionError, DamagedBlob

MAJOR = 2
"""Major version of all metadata read and written here."""

ANY_BATCH = -1
"""Value of the plugin's batch field if each inference chooses its batch."""

OPENVINO = (2026, 4, 1)
"""OpenVINO release of this format, written in place of OpenVINO's own version."""

IGNORE_VERSION = "export it again, or set NPU_DISABLE_VERSION_CHECK to YES to try its payload"
"""Advice in errors about another version."""


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


class BlobType(IntEnum):
    """Type of a payload."""

    ELF = 0
    """Program for the NPU."""
    LLVM = 1
    """Host code that calls the NPU; it is never loaded here."""
    BYTECODE = 2
    """Host code for an interpreter; it is never loaded here."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """Fields of all versions; fields that a version lacks keep their defaults.

    Attributes:
        minor: the version, of major 2.
        openvino: 2.0: major, minor and patch of the release that wrote the blob.
        init_sizes: 2.1: bytes of each init schedule at the payload's end, which prepares the main
            program's weights; empty if the main program has its weights.
        batch: 2.2: batch that the plugin runs one by one; None if the payload itself has the batch.
        input_layouts, output_layouts: 2.3: as ``ov::Layout`` writes them; bytes that are not UTF-8
            become surrogates.
        compiler: 2.4: major version in the upper 16 bits, minor in the lower; None if unknown.
        encrypted: 2.5: whether the owner's function encrypted the payload.
        compatibility: 2.6: the compiler's own description of the payload's requirements.
        blob_type: 2.7: the payload's type.
    """

    minor: int = 7
    openvino: tuple[int, int, int] = OPENVINO
    init_sizes: tuple[int, ...] = ()
    batch: int | None = None
    input_layouts: tuple[str, ...] = ()
    output_layouts: tuple[str, ...] = ()
    compiler: int | None = None
    encrypted: bool = False
    compatibility: bytes = b""
    blob_type: BlobType = BlobType.ELF

    @property
    def version(self) -> str:
        """Version as text."""
        return f"{MAJOR}.{self.minor}"

    def write(self) -> bytes:
        """Return the bytes of this version, from the version's number on."""
        number = struct.pack("<I", MAJOR << 16 | self.minor)
        return number + b"".join(added.write(self) for added in ADDED[: self.minor + 1])


class Added(NamedTuple):
    """Fields that a minor version added."""

    read: Callable[[Cursor], dict[str, Any]]
    """Reads the version's fields of Metadata."""
    write: Callable[[Metadata], bytes]


def read_metadata(cursor: Cursor, any_minor: bool = False) -> Metadata | None:
    """Read metadata, from the version's number on.

    Args:
        cursor: at the number; its bytes end at the footer.
        any_minor: whether to accept unknown versions: a later minor version returns its known first
            fields, another major version None.

    Raises:
        BlobVersionError: the version is unknown.
        BlobError: the metadata is truncated, or its sizes exceed the bytes.
    """
    number = cursor.number("I", "the metadata's version")
    major, minor = number >> 16, number & 0xFFFF
    if major != MAJOR or minor >= len(ADDED):
        if not any_minor:
            known = f"{MAJOR}.0 to {MAJOR}.{len(ADDED) - 1}"
            raise BlobVersionError("metadata", f"{major}.{minor}", known, advice=IGNORE_VERSION)
        if major != MAJOR:
            return None
        minor = len(ADDED) - 1
    fields: dict[str, Any] = {"minor": minor}
    for added in ADDED[: minor + 1]:
        fields |= added.read(cursor)
    return Metadata(**fields)


def _number(name: str, code: str, what: str, kind: Callable[[int], int] = int) -> Added:
    """Return a field of one number, of which 0 stands for the default."""

    def read(cursor: Cursor) -> dict[str, Any]:
        found = cursor.number(code, what)
        return {name: kind(found)} if found else {}

    def write(metadata: Metadata) -> bytes:
        return struct.pack(f"<{code}", getattr(metadata, name) or 0)

    return Added(read, write)


def _read_openvino(cursor: Cursor) -> dict[str, Any]:
    return {"openvino": tuple(cursor.number("H", "OpenVINO's version") for _ in range(3))}


def _write_openvino(metadata: Metadata) -> bytes:
    return struct.pack("<3H", *metadata.openvino)


def _read_init_sizes(cursor: Cursor) -> dict[str, Any]:
    count = cursor.count("init schedules", 8)
    sizes = tuple(cursor.number("Q", "an init schedule's size") for _ in range(count))
    return {"init_sizes": sizes}


def _write_init_sizes(metadata: Metadata) -> bytes:
    sizes = metadata.init_sizes
    return struct.pack(f"<Q{len(sizes)}Q", len(sizes), *sizes)


def _read_layouts(cursor: Cursor) -> dict[str, Any]:
    counts = [cursor.count(f"{side} layouts", 2) for side in ("input", "output")]
    if sum(counts) > cursor.remaining // 2:
        raise DamagedBlob(f"{sum(counts)} layouts do not fit {cursor.remaining} remaining bytes")
    inputs, outputs = (tuple(_read_layout(cursor) for _ in range(count)) for count in counts)
    return {"input_layouts": inputs, "output_layouts": outputs}


def _read_layout(cursor: Cursor) -> str:
    size = cursor.number("H", "a layout's length")
    return cursor.bytes(size, "a layout").decode(errors="surrogateescape")


def _write_layouts(metadata: Metadata) -> bytes:
    sides = metadata.input_layouts, metadata.output_layouts
    texts = [text.encode(errors="surrogateescape") for side in sides for text in side]
    counts = struct.pack("<2Q", *map(len, sides))
    return counts + b"".join(struct.pack("<H", len(text)) + text for text in texts)


def _read_compatibility(cursor: Cursor) -> dict[str, Any]:
    size = cursor.count("bytes of the payload's requirements", 1)
    return {"compatibility": cursor.bytes(size, "the payload's requirements")}


def _write_compatibility(metadata: Metadata) -> bytes:
    return struct.pack("<Q", len(metadata.compatibility)) + metadata.compatibility


def _read_blob_type(cursor: Cursor) -> dict[str, Any]:
    number = cursor.number("B", "the blob's type")
    if number not in set(BlobType):
        raise DamagedBlob(f"the blob's type {number} is unknown")
    return {"blob_type": BlobType(number)}


def _write_blob_type(metadata: Metadata) -> bytes:
    return struct.pack("<B", metadata.blob_type)


ADDED: tuple[Added, ...] = (
    Added(_read_openvino, _write_openvino),
    Added(_read_init_sizes, _write_init_sizes),
    _number("batch", "q", "the batch"),
    Added(_read_layouts, _write_layouts),
    _number("compiler", "I", "the compiler's version"),
    _number("encrypted", "B", "the encryption flag", bool),
    Added(_read_compatibility, _write_compatibility),
    Added(_read_blob_type, _write_blob_type),
)
"""Added fields, by minor version."""
