"""Name of the input that marks a long inference."""

from __future__ import annotations

from collections.abc import Iterable

LONG_ROPE = "npuw_longrope_"
"""Name prefix of the input i64 [sequences, 1]: 1 if a position of the inference is at least the
number at the end of the name."""


def long_from(names: Iterable[str]) -> tuple[str, int] | None:
    """Return the input that marks long inferences, and the position that makes one long.

    Args:
        names: names of a static model's inputs.
    """
    for name in names:
        begin, mark, limit = name.partition(LONG_ROPE)
        if mark and not begin and limit.isdecimal():
            return name, int(limit)
    return None
