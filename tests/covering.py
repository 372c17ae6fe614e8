"""Few cases that have each architecture and each precision, where all pairs add little."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

One = TypeVar("One")
Other = TypeVar("Other")

PRECISIONS = ("fp16", "int8", "int4")


def each_architecture_once(names: Sequence[str], first: int = 0) -> list[str]:
    """Names ``ARCHITECTURE_PRECISION``: of each architecture one, in precisions that take turns.

    Args:
        names: ordered; those with other precisions, or of deep models, stay.
        first: the precision that the turns begin with; another one gives another choice.
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
    """Pairs: each of many once, and beside it one of few, which take turns."""
    return [(one, few[number % len(few)]) for number, one in enumerate(many)]
