"""Cutting of rows into tiles of one length: a cache's stored rows, or the rows of a block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

ROW_STEP = 16
"""Divisor of a tile's rows, if at least as many are stored: the hardware computes wide vectors."""


@dataclass(frozen=True, slots=True)
class RowTile:
    """Some rows, all in one part.

    Attributes:
        part: number of the part.
        begin: the first row, in the part.
        first: the first row, in all parts together.
        own: the first row that no earlier tile has: the last tile of a part ends with the part,
            and may begin inside the previous tile.
        end: end of the rows. In a part shorter than a tile, the tile ends with the part.
    """

    part: int
    begin: int
    first: int
    own: int
    end: int


def tile_length(parts: Sequence[int], longest: int) -> int:
    """Return the rows of a tile, for as few tiles as possible, each as short as possible.

    Args:
        parts: number of rows in each part, at most.
        longest: length that no tile exceeds by more than ``ROW_STEP``.
    """
    rows = max(parts)
    count = -(-rows // longest)
    return min(rows, -(-rows // (count * ROW_STEP)) * ROW_STEP)


def cut_tiles(parts: Sequence[int], length: int) -> Iterator[RowTile]:
    """Yield tiles of one length; every row belongs to one tile's own range."""
    before = 0
    for part, rows in enumerate(parts):
        for own in range(0, rows, length):
            begin = max(0, min(own, rows - length))
            end = min(own + length, rows)
            yield RowTile(part, begin, before + begin, before + own, before + end)
        before += rows
