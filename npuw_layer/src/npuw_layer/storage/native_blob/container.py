"""Locations of payload, metadata and footer, from the sizes in the file."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from npuw_layer.errors import BlobError, DamagedBlob
from npuw_layer.storage.container import PAGE, ByteRange
from npuw_layer.storage.native_blob.metadata import Cursor, Metadata, read_metadata

MAGIC = b"OVNPU"
"""Last bytes of a native blob."""

ELF = b"\x7fELF"
"""First bytes of an unencrypted payload."""

_FOOTER = struct.Struct("<Q5s")
_LEAST = 4 + _FOOTER.size
"""Bytes of a version and a footer: the minimum of a native blob."""


@dataclass(frozen=True, slots=True)
class NativeBlob:
    """A native blob with consistent sizes; its contents are not verified yet.

    Attributes:
        payload: the compiler's output.
        metadata: the plugin's fields; None if their version is unknown.
        described: the bytes that the metadata was read from.
        behind: the bytes between the metadata and the footer.
    """

    payload: ByteRange
    metadata: Metadata | None
    described: memoryview
    behind: memoryview


def looks_native(content: memoryview) -> bool:
    """Return whether bytes begin as a payload, or end as a native blob."""
    return bytes(content[: len(ELF)]) == ELF or ends_natively(content)


def ends_natively(content: memoryview) -> bool:
    """Return whether bytes end as a native blob, not as a payload alone."""
    return bytes(content[-len(MAGIC) :]) == MAGIC


def read_blob(content: memoryview, any_version: bool = False) -> NativeBlob:
    """Find the parts of a native blob.

    Args:
        content: all of its bytes.
        any_version: whether to accept metadata of an unknown version.

    Raises:
        BlobVersionError: the metadata's version is unknown.
        BlobError: the bytes are not a native blob, truncated or damaged.
    """
    if len(content) < _LEAST:
        raise DamagedBlob(f"{len(content)} bytes are too few; a native blob has at least {_LEAST}")
    if not ends_natively(content):
        raise BlobError(
            f"it does not end with {MAGIC!r}: it is truncated, has appended bytes, or is only a "
            "payload; for a payload set NPU_IMPORT_RAW_BLOB to YES, else export the model again"
        )
    end = len(content) - _FOOTER.size
    size, _ = _FOOTER.unpack(content[end:])
    if not 0 < size <= len(content) - _LEAST:
        raise DamagedBlob(f"a payload of {size} bytes does not fit a file of {len(content)}")
    cursor = Cursor(content[size:end])
    metadata = read_metadata(cursor, any_version)
    if metadata is not None and sum(metadata.init_sizes) > size:
        raise DamagedBlob(
            f"payload of {size} bytes: init schedules take {sum(metadata.init_sizes)}"
        )
    at = size + cursor.position
    behind = content[end:end] if metadata is None else content[at:end]
    return NativeBlob(ByteRange(content, 0, size), metadata, content[size:at], behind)


def pad(payload: bytes | memoryview) -> bytes:
    """Return the zeros that fill a payload's last page, so that the plugin can map it, too."""
    return bytes(-len(payload) % PAGE)


def footer(payload_size: int) -> bytes:
    """Return the footer of a native blob."""
    return _FOOTER.pack(payload_size, MAGIC)
