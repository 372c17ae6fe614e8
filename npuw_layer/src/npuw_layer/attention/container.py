"""The programs of an attention as one piece of bytes.

    magic        8 bytes
    length       u64, of the header
    header       JSON: the attention, rows of a tile, sizes
    blobs        of a tile, and of the new rows, each at a multiple of a page

It is read as what may be damaged: whatever does not fit is an error.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npuw_layer.attention.shapes import CachedAttention
from npuw_layer.errors import DeviceError

MAGIC = b"NPUWHFA1"
_HEAD = struct.Struct("<8sQ")
_PAGE = 4096


class _Header(BaseModel):
    """What the header says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    attention: CachedAttention
    rows: int = Field(ge=1)
    blobs: tuple[int, int]
    """Bytes of each."""


@dataclass(frozen=True, slots=True)
class TilePrograms:
    """What an attention is computed by.

    Attributes:
        attention: what it is.
        rows: of a tile.
        tile: the program of one.
        last: the program of the new rows.
    """

    attention: CachedAttention
    rows: int
    tile: bytes | memoryview
    last: bytes | memoryview


def is_container(content: bytes | memoryview) -> bool:
    """Whether bytes begin as such a container."""
    return bytes(content[:8]) == MAGIC


def write_container(programs: TilePrograms) -> bytes:
    """Put programs into bytes."""
    blobs = (programs.tile, programs.last)
    sizes = (len(blobs[0]), len(blobs[1]))
    header = _Header(attention=programs.attention, rows=programs.rows, blobs=sizes)
    text = json.dumps(header.model_dump(), sort_keys=True).encode()
    made = bytearray(_HEAD.pack(MAGIC, len(text)) + text)
    for blob in blobs:
        made += bytes(-len(made) % _PAGE)
        made += blob
    return bytes(made)


def read_container(content: bytes | memoryview) -> TilePrograms:
    """Read programs; blobs stay where they are.

    Raises:
        DeviceError: the bytes are no such container, or damaged.
    """
    raw = memoryview(content)
    header, at = _read_header(raw)
    blobs: list[memoryview] = []
    for size in header.blobs:
        at += -at % _PAGE
        blobs.append(raw[at : at + size])
        at += size
    if at != len(raw) or min(header.blobs) < 0:
        raise _damaged(f"{len(raw)} bytes, {at} are expected")
    if header.rows > header.attention.shape.past:
        raise _damaged("a tile is longer than what is stored")
    return TilePrograms(header.attention, header.rows, blobs[0], blobs[1])


def _read_header(raw: memoryview) -> tuple[_Header, int]:
    if len(raw) < _HEAD.size or not is_container(raw):
        raise _damaged("it does not begin as one")
    _, length = _HEAD.unpack(raw[: _HEAD.size])
    end = _HEAD.size + length
    if end > len(raw):
        raise _damaged(f"its header ends at {end}, of {len(raw)} bytes")
    try:
        return _Header.model_validate_json(bytes(raw[_HEAD.size : end])), end
    except ValidationError as error:
        raise _damaged(f"its header is not valid: {error.error_count()} errors") from None


def _damaged(what: str) -> DeviceError:
    return DeviceError(f"not an attention in tiles: {what}")
