"""Records of a metadata section; reading a field checks its range.

Source: docs/reference/elf.md#metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from driver_layer.abi.layout import Record, field_offset, read_text
from driver_layer.abi.metadata import ContainerError, decode_container
from driver_layer.errors import SectionError
from driver_layer.loader.read import Section


@dataclass(frozen=True, slots=True)
class CheckedRecord:
    """A record; ``place`` is its byte offset in the section."""

    section: str
    place: int
    record: Any

    def error(self, field: str, message: str, index: int = 0) -> SectionError:
        """Return an error that names the section and the field's offset in it."""
        kind: Record = self.record.dtype
        at = field_offset(kind, field) + index * kind[field].base.itemsize
        return SectionError(f"{field}: {message}", self.section, self.place + at)

    def number(self, field: str, most: int | None = None) -> int:
        """Read a number.

        Raises:
            SectionError: the number is larger than ``most``.
        """
        value = int(self.record[field])
        if most is not None and value > most:
            raise self.error(field, f"{value} is more than {most}")
        return value

    def numbers(self, field: str, count: int) -> tuple[int, ...]:
        """Read the first ``count`` numbers of an array, which has at least ``count``."""
        return tuple(self.record[field][:count].tolist())

    def label(self, field: str) -> str:
        """Read a text that is for display only; invalid UTF-8 is replaced.

        Raises:
            SectionError: the text has no terminating zero.
        """
        return read_text(self._terminated(field, 0))

    def text(self, field: str, index: int = 0) -> str:
        """Read a text, or one of an array of texts.

        Raises:
            SectionError: the text is not UTF-8, or has no terminating zero.
        """
        raw = self._terminated(field, index).split(b"\0", 1)[0]
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.error(field, f"{raw!r} is not UTF-8", index) from None

    def _terminated(self, field: str, index: int) -> bytes:
        kind: Record = self.record.dtype[field]
        found = self.record[field][index] if kind.shape else self.record[field]
        if len(found) == kind.base.itemsize and b"\0" not in found:  # numpy drops trailing zeros
            raise self.error(field, f"{len(found)} bytes without a terminating zero", index)
        return bytes(found)


def read_arrays(
    section: Section, kinds: Sequence[tuple[str, Record]]
) -> dict[str, list[CheckedRecord]]:
    """Read the arrays of a section by name.

    Raises:
        SectionError: an array or a link between them leaves the section.
    """
    try:
        arrays = decode_container(section.data, [kind for _, kind in kinds])
    except ContainerError as error:
        raise SectionError(str(error), section.name, error.offset) from None
    return {
        name: [
            CheckedRecord(section.name, array.offset + number * kind.itemsize, record)
            for number, record in enumerate(array.records)
        ]
        for (name, kind), array in zip(kinds, arrays, strict=True)
    }
