"""Figures of a sweep, their ratios to their neighbours, and the mark of those that stand out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

MARK = 1.5
"""A ratio to a neighbour from which a figure is marked."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Times of one setting."""

    setting: str
    values: tuple[float, ...] = ()
    """Seconds, one for each quantity of the table; empty if the setting was refused."""
    ratios: tuple[float, ...] = ()
    """Ratio of each value to the neighbour's; empty for a setting that others are compared to."""
    peer: float | None = None
    """First value ÷ OpenVINO's, median of pairs; None if OpenVINO was not measured."""
    refused: str = ""
    """Reason for which the setting was refused."""

    @property
    def marked(self) -> bool:
        """True if a ratio reaches the mark."""
        return any(map(is_marked, self.ratios))


@dataclass(frozen=True, slots=True)
class Table:
    """Figures of one sweep."""

    title: str
    rule: str
    """Measured quantity, and the neighbour of each setting."""
    quantities: tuple[str, ...]
    figures: Sequence[Figure]


def is_marked(ratio: float) -> bool:
    """Return whether a ratio reaches the mark, as it is printed."""
    return round(ratio, 2) >= MARK


def beside_previous(figures: Sequence[Figure], sizes: Sequence[float] = ()) -> list[Figure]:
    """Return figures with ratios to the previous measured figure.

    Args:
        figures: figures of ascending settings.
        sizes: sizes of the settings, if values are compared per unit of size.
    """
    units = sizes or [1.0] * len(figures)
    measured = [pair for pair in zip(figures, units, strict=True) if pair[0].values]
    compared = {
        figure.setting: _ratios(figure, before, unit / unit_before)
        for (before, unit_before), (figure, unit) in pairwise(measured)
    }
    return [replace(each, ratios=compared.get(each.setting, ())) for each in figures]


def beside_first(figures: Sequence[Figure]) -> list[Figure]:
    """Return figures with ratios to the first figure."""
    first, *others = figures
    return [first, *(replace(each, ratios=_ratios(each, first, 1.0)) for each in others)]


def _ratios(figure: Figure, neighbour: Figure, growth: float) -> tuple[float, ...]:
    pairs = zip(figure.values, neighbour.values, strict=False)  # one without values was refused
    return tuple(value / (growth * other) for value, other in pairs)
