"""Name of the input that tells a static model of a long inference."""

from __future__ import annotations

from collections.abc import Iterable

LONG_ROPE = "npuw_longrope_"
"""Begins the name of the input i64 [sequences, 1]: 1 if a position of the inference is not below
the number that ends the name."""


def long_from(names: Iterable[str]) -> tuple[str, int] | None:
    """Return the input that tells of long inferences, and the position that makes one long.

    Args:
        names: of a static model's inputs.
    """
    for name in names:
        begin, mark, limit = name.partition(LONG_ROPE)
        if mark and not begin and limit.isdecimal():
            return name, int(limit)
    return None
