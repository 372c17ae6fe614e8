"""Which rows of the caches go where: integers only, no tensors.

A model takes ``width`` tokens, the ones in use aligned to the right; so are the rows that it gives
out. The cache is filled from row 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowCopy:
    """Rows of a present tensor and where they belong in the past."""

    source: int
    target: int
    rows: int


def store_plan(width: int, used: int, stored: int) -> RowCopy:
    """Where the new rows of an inference go.

    Args:
        width: tokens that the model takes.
        used: how many of them were real.
        stored: rows in the cache before.
    """
    return RowCopy(source=width - used, target=stored, rows=used)


def chunks(tokens: int, width: int) -> Iterator[tuple[int, int]]:
    """Cut a prompt into pieces of at most ``width`` tokens: (begin, end) of each."""
    for begin in range(0, tokens, width):
        yield begin, min(begin + width, tokens)


def mask_columns(past: int, width: int, stored: int, used: int) -> tuple[slice, slice]:
    """Where a mask over ``past + width`` positions is set.

    Returns:
        The columns of the stored tokens, from the left, and those of the new ones, at the right.
    """
    return slice(0, stored), slice(past + width - used, past + width)
