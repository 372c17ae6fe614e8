"""Along which axes of its K and V caches a model counts sequences and tokens.

Source: NPUW_LLM_BATCH_DIM and NPUW_LLM_SEQ_LEN_DIM (fact sheet npuw §b).
"""

from __future__ import annotations

from dataclasses import dataclass

RANK = 4
"""K and V have axes for sequences, heads, tokens and their width."""


@dataclass(frozen=True, slots=True)
class CacheAxes:
    """Along which axes of K and V a model counts what; of the others the last is their width."""

    sequences: int = 0
    tokens: int = 2

    @property
    def order(self) -> list[int]:
        """Which axis of [sequences, heads, tokens, width] each axis of the model's is."""
        others = iter((1, 3))
        counted = {self.sequences: 0, self.tokens: 2}
        return [counted[axis] if axis in counted else next(others) for axis in range(RANK)]

    @property
    def back(self) -> list[int]:
        """Which axis of the model's each axis of [sequences, heads, tokens, width] is."""
        order = self.order
        return sorted(range(RANK), key=order.__getitem__)


USUAL = CacheAxes()
"""[sequences, heads, tokens, width]."""
