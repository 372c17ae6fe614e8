"""Selections of cases that cover each architecture and each precision, instead of all pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

One = TypeVar("One")
Other = TypeVar("Other")

PRECISIONS = ("fp16", "int8", "int4")


def each_architecture_once(names: Sequence[str], first: int = 0) -> list[str]:
    """Return one name ``ARCHITECTURE_PRECISION`` per architecture, with alternating precisions.

    Args:
        names: ordered; names with other precisions, or of deep models, are kept.
        first: index of the first precision; another index selects other cases.
    """
    found: dict[str, list[str]] = {}
    for name in names:
        architecture, _, precision = name.rpartition("_")
        alone = precision not in PRECISIONS or f"{architecture}_int8" not in names
        found.setdefault(name if alone else architecture, []).append(name)
    turns = [each for each in found.values() if len(each) > 1]
    chosen = [each[(first + number) % len(each)] for number, each in enumerate(turns)]
    return sorted([*(each[0] for each in found.values() if len(each) == 1), *chosen])


def beside_by_turns(many: Iterable[One], few: Sequence[Other]) -> list[tuple[One, Other]]:
    """Pair each element of ``many`` with an element of ``few``, in turn."""
    return [(one, few[number % len(few)]) for number, one in enumerate(many)]
