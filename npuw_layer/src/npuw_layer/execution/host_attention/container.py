"""The programs of an attention as a container: one for a tile, one for the new rows."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from npuw_layer.execution.host_attention.shapes import CachedAttention
from npuw_layer.storage.program_set import Bytes, Entry, ProgramSetKind, Size


class _Header(Entry):
    """Header of the container."""

    attention: CachedAttention
    rows: int = Field(ge=1)
    blobs: tuple[Size, Size]
    """Bytes of each program."""


@dataclass(frozen=True, slots=True)
class TilePrograms:
    """The programs of an attention.

    Attributes:
        attention: names and sizes of the attention.
        rows: rows of a tile.
        tile: the program of a tile.
        last: the program of the new rows.
    """

    attention: CachedAttention
    rows: int
    tile: Bytes
    last: Bytes


KIND = ProgramSetKind(b"NPUWHFA2", _Header, "a tiled attention (HFA)")


def write_container(programs: TilePrograms) -> bytes:
    """Return programs as bytes."""
    sizes = (len(programs.tile), len(programs.last))
    header = _Header(attention=programs.attention, rows=programs.rows, blobs=sizes)
    return KIND.write(header, (programs.tile, programs.last))


def read_container(content: Bytes) -> TilePrograms:
    """Read programs; blobs stay in place.

    Raises:
        DeviceError: the bytes are another format, or damaged.
    """
    opened = KIND.open(content)
    header = opened.header
    tile, last = opened.blobs(header.blobs)
    opened.finish()
    if header.rows > max(header.attention.parts):
        raise KIND.damaged("a tile has more rows than the cache")
    return TilePrograms(header.attention, header.rows, tile, last)
