"""How stored rows are cut into tiles of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ROW_STEP = 16
"""Tiles have a multiple of so many rows, if that many are stored: what computes them is wide."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Some stored rows, all of one piece of the cache.

    Attributes:
        piece: which.
        begin: the first one, in the piece.
        first: the same in the whole cache.
        own: the first one that no tile before has: the last tile of a piece ends with it, and may
            begin inside of the tile before.
        end: behind the last one. A piece shorter than a tile has fewer rows than that.
    """

    piece: int
    begin: int
    first: int
    own: int
    end: int


def tile_length(pieces: Sequence[int], longest: int) -> int:
    """Give the rows of a tile: as few tiles as possible, and these as short as possible.

    Args:
        pieces: rows that are stored at most in each piece of the cache.
        longest: what no tile exceeds by more than ``ROW_STEP``.
    """
    rows = max(pieces)
    count = -(-rows // longest)
    return min(rows, -(-rows // (count * ROW_STEP)) * ROW_STEP)


def cut_tiles(pieces: Sequence[int], length: int) -> Sequence[Tile]:
    """Cut stored rows into tiles of one length; every row is some tile's own."""
    tiles: list[Tile] = []
    before = 0
    for piece, rows in enumerate(pieces):
        for own in range(0, rows, length):
            begin = max(0, min(own, rows - length))
            end = min(own + length, rows)
            tiles.append(Tile(piece, begin, before + begin, before + own, before + end))
        before += rows
    return tiles
