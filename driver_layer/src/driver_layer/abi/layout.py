"""Binary records, declared once as (field, offset, type) and checked when they are declared."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Record = np.dtype[Any]
"""A little-endian structured type; ``Record.itemsize`` is the size in the file."""

RecordArray = npt.NDArray[Any]
"""An array of records; fields are accessed by name."""


def record(size: int, *fields: tuple[str, int, Any]) -> Record:
    """Declare a record of ``size`` bytes from fields ``(name, offset, type)``.

    A type is anything numpy accepts, e.g. ``"<u4"``, ``("<u8", (9,))`` or another record. Bytes
    that no field covers are reserved and zero.

    Raises:
        ValueError: fields overlap or end after ``size``; an error in the declaration.
    """
    end = 0
    for name, offset, kind in fields:
        if offset < end:
            raise ValueError(f"field {name} at {offset} overlaps the one before it (ends at {end})")
        end = offset + np.dtype(kind).itemsize
    if end > size:
        raise ValueError(f"fields end at {end}, after the record's {size} bytes")
    return np.dtype(
        {
            "names": [name for name, _, _ in fields],
            "formats": [kind for _, _, kind in fields],
            "offsets": [offset for _, offset, _ in fields],
            "itemsize": size,
        }
    )


def filled(kind: Record, **fields: Any) -> RecordArray:
    """Return an array of one record with the given fields; all others are zero."""
    made = np.zeros(1, kind)
    for name, value in fields.items():
        made[name] = value
    return made


@cache
def field_offset(kind: Record, field: str) -> int:
    """Return the byte offset of a field, for relocations that patch the field."""
    offsets = {str(name): int(entry[1]) for name, entry in (kind.fields or {}).items()}
    return offsets[field]


def text_field(value: str, size: int) -> bytes:
    """Encode a fixed-size, zero-terminated text field; a long text is cut between characters."""
    return value.encode()[: size - 1].decode(errors="ignore").encode()


def read_text(value: bytes) -> str:
    """Decode a fixed-size text field up to its terminator; invalid UTF-8 is replaced."""
    return bytes(value).split(b"\0", 1)[0].decode(errors="replace")
