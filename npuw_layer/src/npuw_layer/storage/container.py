"""Container file of programs: a header, a manifest, and page-aligned programs.

The content is untrusted: sizes are compared with the file's, every byte is zero or covered by a
digest, and any damage is a DamagedBlob that names its place. Locations follow from sizes, so the
format has no offsets that could be wrong.

Source of the layout's kind: docs/reference/npuw.md#model-blobs (the magic, the kind, versions that
must match) and docs/reference/npuw.md#native-blobs (the magic in front, not at the end).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from driver_layer.support.files import content_digest
from npuw_layer.backends.mapped import read_ahead
from npuw_layer.errors import BlobVersionError, DamagedBlob
from npuw_layer.storage.manifest import Constant, Manifest, ProgramEntry


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


MAGIC = b"\x13\x37npuw"
STAGE, MODEL, STATIC = b"STAGE\0", b"LLMCMO", b"STATIC"
"""Kinds: one program in the cache, a whole language model, and a static model."""

VERSION = (1, 1)
"""Version of the format; another major or minor is rejected."""

PAGE = 4096
"""Alignment of programs, bytes, so that they can be mapped in place."""

_MOST_MANIFEST = 64 << 20
_FIRST = 64 << 10
"""Bytes that contain the header, and most manifests."""

_HEADERS = {
    kind: HeaderFormat(MAGIC + kind, VERSION, "QQ32s", "format") for kind in (STAGE, MODEL, STATIC)
}
_HEADER_SIZE = _HEADERS[STAGE].size

Span = tuple[int, int]
"""Offset and size."""


class ByteRange(NamedTuple):
    """Location of bytes."""

    content: memoryview
    """Surrounding buffer; if it is a mapped file, it can be read ahead."""
    offset: int
    size: int

    @property
    def view(self) -> memoryview:
        """The bytes."""
        return self.content[self.offset : self.offset + self.size]


M = TypeVar("M", bound=Manifest)


@dataclass(frozen=True, slots=True)
class Container(Generic[M]):
    """Programs and their manifest; sizes are consistent, contents are not yet verified."""

    manifest: M
    digest: str
    """Digest of the manifest, and so of all its content."""
    places: tuple[ByteRange, ...]
    """Location of each program."""
    gaps: tuple[ByteRange, ...]
    """Bytes before and between the programs: zeros."""

    @property
    def programs(self) -> tuple[memoryview, ...]:
        """Programs, in place."""
        return tuple(place.view for place in self.places)

    def check_programs(self) -> None:
        """Verify the bytes that loading reads.

        Raises:
            DamagedBlob: a program, or a gap between two, is damaged.
        """
        for gap in self.gaps:
            if any(gap.view):
                raise DamagedBlob(f"{gap.size} bytes at {gap.offset} are not zeros")
        for part, place in zip(self.manifest.parts, self.places, strict=True):
            if _digest(place.content, place.offset, _others(part)) != part.sha256:
                raise DamagedBlob(f"{part.name} is damaged")

    def check_constants(self) -> None:
        """Verify the constants, which reads all of them.

        Raises:
            DamagedBlob: a constant is damaged.
        """
        for part, place in zip(self.manifest.parts, self.places, strict=True):
            for constant in part.constants:
                span = constant.offset, constant.size
                if _digest(place.content, place.offset, [span]) != constant.sha256:
                    at = f"{constant.size} bytes at {constant.offset}"
                    raise DamagedBlob(f"{part.name}: a constant of {at} is damaged")

    @property
    def has_constants(self) -> bool:
        """True if a program has constants."""
        return any(part.constants for part in self.manifest.parts)


def describe(name: str, program: bytes | memoryview, constants: Sequence[Span]) -> ProgramEntry:
    """Return a program's manifest entry, with its digests.

    Args:
        name: the program's name.
        program: its bytes.
        constants: its spans that are used in place, ascending.
    """
    view = memoryview(program)
    found = [
        Constant(offset=offset, size=size, sha256=_digest(view, 0, [(offset, size)]))
        for offset, size in constants
    ]
    blank = ProgramEntry(name=name, size=len(view), sha256="0" * 64, constants=tuple(found))
    return blank.model_copy(update={"sha256": _digest(view, 0, _others(blank))})


def write_container(
    file: BinaryIO, kind: bytes, manifest: Manifest, programs: Sequence[bytes | memoryview]
) -> str:
    """Write programs and their manifest; return the manifest's digest.

    Raises:
        OSError: the file cannot be written.
    """
    text = manifest.model_dump_json().encode()
    digest = content_digest([text])
    *_, total = _ends(len(text), manifest.parts)
    file.write(_HEADERS[kind].pack(total, len(text), digest) + text)
    end = _HEADER_SIZE + len(text)
    for program in programs:
        file.write(bytes(-end % PAGE))
        file.write(program)
        end = len(program)  # relative to the program's page
    return digest.hex()


def kind_of(data: memoryview) -> bytes:
    """Return the kind that a file claims, unverified; empty if it has no magic."""
    magic, kind = bytes(data[: len(MAGIC)]), bytes(data[len(MAGIC) : len(MAGIC + STAGE)])
    return kind if magic == MAGIC else b""


def read_container(data: memoryview, kind: bytes, manifest_type: type[M]) -> Container[M]:
    """Read header and manifest.

    Args:
        data: the file's bytes, which must not change.
        kind: STAGE, MODEL or STATIC.
        manifest_type: the manifest's class.

    Raises:
        BlobVersionError: the file has another version of the format.
        DamagedBlob: the file is of another kind, truncated or damaged.
    """
    read_ahead(data, 0, min(len(data), _FIRST))
    stated, size, digest = _read_header(data, kind)
    manifest = read_manifest(data[_HEADER_SIZE : _HEADER_SIZE + size], digest, manifest_type)
    *ends, total = _ends(size, manifest.parts)
    if total != stated:
        raise DamagedBlob(f"the parts take {total} bytes, the header states {stated}")
    places = tuple(
        ByteRange(data, _aligned(end), part.size)
        for end, part in zip(ends, manifest.parts, strict=True)
    )
    gaps = tuple(ByteRange(data, end, _aligned(end) - end) for end in ends)
    return Container(manifest, digest.hex(), places, gaps)


def read_manifest(text: memoryview, digest: bytes, manifest_type: type[M]) -> M:
    """Read a manifest.

    Raises:
        DamagedBlob: its digest differs, or entries are unknown or missing.
    """
    if content_digest([text]) != digest:
        raise DamagedBlob("the manifest is damaged")
    try:
        return manifest_type.model_validate_json(bytes(text))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        what = f"the manifest is wrong at {place or 'its beginning'}: {first['msg']}"
        raise DamagedBlob(what) from None


def _read_header(data: memoryview, kind: bytes) -> tuple[int, int, bytes]:
    """Return the file's size, and the manifest's size and digest."""
    if len(data) >= _HEADER_SIZE:
        magic, found = bytes(data[: len(MAGIC)]), bytes(data[len(MAGIC) : len(MAGIC + kind)])
        if magic != MAGIC:
            raise DamagedBlob(f"it begins with {magic!r}, not {MAGIC!r}")
        if found != kind:
            raise DamagedBlob(f"it is of kind {found!r}, not {kind!r}")
    total, size, digest = _HEADERS[kind].unpack(data)
    if total != len(data):
        raise DamagedBlob(f"it has {len(data)} bytes, its header states {total}")
    most = min(_MOST_MANIFEST, len(data) - _HEADER_SIZE)
    if size > most:
        raise DamagedBlob(f"the manifest has {size} bytes, more than the file's {most}")
    return total, size, digest


def _ends(manifest_size: int, parts: Sequence[ProgramEntry]) -> Iterator[int]:
    """Yield the end of the manifest, then of each program."""
    end = _HEADER_SIZE + manifest_size
    yield end
    for part in parts:
        end = _aligned(end) + part.size
        yield end


def _aligned(offset: int) -> int:
    return -(-offset // PAGE) * PAGE


def _others(part: ProgramEntry) -> Iterator[Span]:
    """Yield the spans of a program between its constants."""
    end = 0
    for constant in part.constants:
        yield end, constant.offset - end
        end = constant.offset + constant.size
    yield end, part.size - end


def _digest(content: memoryview, begin: int, spans: Iterable[Span]) -> str:
    """Hash spans, relative to a start."""
    return content_digest(_read(content, begin + offset, size) for offset, size in spans).hex()


def _read(content: memoryview, offset: int, size: int) -> memoryview:
    read_ahead(content, offset, size)
    return content[offset : offset + size]
