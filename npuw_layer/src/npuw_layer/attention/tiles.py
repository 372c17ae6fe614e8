"""How stored rows are cut into tiles of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ROW_STEP = 16
"""Tiles have a multiple of so many rows, if that many are stored: what computes them is wide."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Some stored rows.

    Attributes:
        begin: the first one.
        own: the first one that no tile before has: the last tile ends with the cache, and may begin
            inside of the tile before.
        end: behind the last one.
    """

    begin: int
    own: int
    end: int


def tile_length(past: int, longest: int) -> int:
    """Give the rows of a tile: as few tiles as possible, and these as short as possible.

    Args:
        past: rows that are stored at most.
        longest: what no tile exceeds by more than ``ROW_STEP``.
    """
    count = -(-past // longest)
    return min(past, -(-past // (count * ROW_STEP)) * ROW_STEP)


def cut_tiles(past: int, length: int) -> Sequence[Tile]:
    """Cut stored rows into tiles of one length; every row is some tile's own."""
    return [
        Tile(min(begin, past - length), begin, min(begin + length, past))
        for begin in range(0, past, length)
    ]
