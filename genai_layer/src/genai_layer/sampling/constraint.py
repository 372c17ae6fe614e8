"""Interface of a constraint: tokens that a text may continue with."""

from __future__ import annotations

from typing import Protocol, Self

from genai_layer.sampling.processors import Logits


class Constraint(Protocol):
    """Constraint of one text; it learns every chosen token."""

    def prepare(self) -> None:
        """Compute the mask of the next token, while the device computes its logits."""
        ...

    def process(self, logits: Logits) -> Logits:
        """Return new logits, -inf for forbidden tokens."""
        ...

    def advance(self, token: int) -> None:
        """Continue the text with a token."""
        ...

    def fork(self) -> Self:
        """Return an independent constraint of an equal text."""
        ...
