"""Container of several programs as one byte string: a cached partitioned model.

    magic        8 bytes
    length       u64, of the header
    header       JSON: the container kind's description of the contents, with their sizes
    blobs        programs, each page-aligned
    literals     weights that are in no file, one after the other

The reader does not trust the bytes: any inconsistency is an error.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npuw_layer.errors import DeviceError

_HEAD = struct.Struct("<8sQ")
_PAGE = 4096

Bytes = bytes | memoryview

Size = Annotated[int, Field(ge=0, le=1 << 40)]
"""Size of an item in a container, bytes."""

Literals = Mapping[str, Sequence[Bytes]]
"""Weights that are in no file, by name: the value in each call, all of one size."""


def literal_sizes(literals: Literals) -> dict[str, int]:
    """Return the bytes of one value of each literal, as headers have them."""
    return {name: len(values[0]) for name, values in literals.items()}


Dim = Annotated[int, Field(ge=0, le=1 << 32)]


class Entry(BaseModel):
    """Base of headers and their records; unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True)


HeaderT = TypeVar("HeaderT", bound=Entry)


@dataclass(frozen=True, slots=True)
class ProgramSetKind(Generic[HeaderT]):
    """A kind of container.

    Attributes:
        magic: its first 8 bytes.
        header: class of its header.
        what: its name in errors.
    """

    magic: bytes
    header: type[HeaderT]
    what: str

    def write(
        self, header: HeaderT, blobs: Iterable[Bytes], literals: Iterable[Literals] = ()
    ) -> bytes:
        """Return a container; the header has the sizes of its contents."""
        text = json.dumps(header.model_dump(), sort_keys=True).encode()
        made = bytearray(_HEAD.pack(self.magic, len(text)) + text)
        for blob in blobs:
            made += bytes(-len(made) % _PAGE)
            made += blob
        for each in literals:
            for name in sorted(each):
                for value in each[name]:
                    made += value
        return bytes(made)

    def begins(self, content: Bytes) -> bool:
        """Return whether bytes begin as such a container."""
        return bytes(content[:8]) == self.magic

    def open(self, content: Bytes) -> ProgramSet[HeaderT]:
        """Read a header.

        Raises:
            DeviceError: the bytes are another format, or damaged.
        """
        raw = memoryview(content)
        if len(raw) < _HEAD.size or not self.begins(raw):
            raise self.damaged("it begins with other bytes")
        _, length = _HEAD.unpack(raw[: _HEAD.size])
        text = self.part(raw, _HEAD.size, length)
        try:
            header = self.header.model_validate(json.loads(bytes(text)))
        except (ValueError, RecursionError, ValidationError) as error:
            raise self.damaged(f"its header cannot be read: {error}") from None
        return ProgramSet(self, header, raw, _HEAD.size + length)

    def part(self, raw: memoryview, begin: int, size: int) -> memoryview:
        """Return bytes, in place."""
        if begin + size > len(raw):
            raise self.damaged(f"its {len(raw)} bytes end within the content at {begin}")
        return raw[begin : begin + size]

    def damaged(self, why: str) -> DeviceError:
        """Return an error about a damaged container."""
        return DeviceError(f"not {self.what}: {why}; compile it again")


class ProgramSet(Generic[HeaderT]):
    """A container that is read in order.

    Args:
        kind: its kind.
        header: its header.
        raw: all of its bytes.
        at: offset of its contents.
    """

    def __init__(
        self, kind: ProgramSetKind[HeaderT], header: HeaderT, raw: memoryview, at: int
    ) -> None:
        self.header = header
        self._kind = kind
        self._raw = raw
        self._at = at

    def blobs(self, sizes: Iterable[int]) -> list[memoryview]:
        """Return the next programs; they stay in place.

        Raises:
            DeviceError: the container is too short.
        """
        return [self._next(size, _PAGE) for size in sizes]

    def literals(self, sizes: Mapping[str, int], count: int = 1) -> dict[str, list[memoryview]]:
        """Return the next literals, ``count`` values of each; errors as ``blobs``."""
        return {
            name: [self._next(size) for _ in range(count)] for name, size in sorted(sizes.items())
        }

    def _next(self, size: int, alignment: int = 1) -> memoryview:
        self._at += -self._at % alignment
        found = self._kind.part(self._raw, self._at, size)
        self._at += size
        return found

    def finish(self) -> None:
        """Check that no bytes are left.

        Raises:
            DeviceError: bytes are left.
        """
        if self._at != len(self._raw):
            raise self._kind.damaged(f"it has {len(self._raw)} bytes, {self._at} are expected")
