"""Cutting of stored rows into tiles of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ROW_STEP = 16
"""Divisor of a tile's rows, if at least as many are stored: the hardware computes wide vectors."""


@dataclass(frozen=True, slots=True)
class RowTile:
    """Some stored rows, all in one part of the cache.

    Attributes:
        part: number of the cache part.
        begin: the first row, in the part.
        first: the first row, in the complete cache.
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
        parts: maximum number of stored rows in each part of the cache.
        longest: length that no tile exceeds by more than ``ROW_STEP``.
    """
    rows = max(parts)
    count = -(-rows // longest)
    return min(rows, -(-rows // (count * ROW_STEP)) * ROW_STEP)


def cut_tiles(parts: Sequence[int], length: int) -> Sequence[RowTile]:
    """Cut stored rows into tiles of one length; every row belongs to one tile's own range."""
    tiles: list[RowTile] = []
    before = 0
    for part, rows in enumerate(parts):
        for own in range(0, rows, length):
            begin = max(0, min(own, rows - length))
            end = min(own + length, rows)
            tiles.append(RowTile(part, begin, before + begin, before + own, before + end))
        before += rows
    return tiles
