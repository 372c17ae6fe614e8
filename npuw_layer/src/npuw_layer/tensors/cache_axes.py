"""Axes of a model's K and V caches.

Source: NPUW_LLM_BATCH_DIM and NPUW_LLM_SEQ_LEN_DIM (docs/reference/npuw.md#options).
"""

from __future__ import annotations

from dataclasses import dataclass

RANK = 4
"""Number of axes of K and V: sequences, heads, tokens and width."""


@dataclass(frozen=True, slots=True)
class CacheAxes:
    """Axes of sequences and tokens in K and V; the others are heads, then width."""

    sequences: int = 0
    tokens: int = 2

    @property
    def order(self) -> list[int]:
        """Index of each axis of the model in [sequences, heads, tokens, width]."""
        others = iter((1, 3))
        counted = {self.sequences: 0, self.tokens: 2}
        return [counted[axis] if axis in counted else next(others) for axis in range(RANK)]

    @property
    def back(self) -> list[int]:
        """Index of each axis of [sequences, heads, tokens, width] in the model."""
        order = self.order
        return sorted(range(RANK), key=order.__getitem__)


USUAL = CacheAxes()
"""Axes [sequences, heads, tokens, width]."""
