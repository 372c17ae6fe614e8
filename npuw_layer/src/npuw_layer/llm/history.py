"""What was said: the tokens of a conversation, as the caller counts them and as they are kept.

They differ once the cache was full and the middle of the history was dropped (NPUW_LLM_ON_FULL =
TRUNCATE): the caller counts on, while what is kept was read anew, side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from npuw_layer.errors import TensorError
from npuw_layer.llm.submodel import NewTokens
from npuw_layer.ports import Array

UNKNOWN = -1
"""Stands for a token whose rows were set from outside."""


@dataclass(slots=True)
class History:
    """The tokens of a conversation.

    Attributes:
        first_position: what the caller's position_ids began with.
        ids: the tokens that are kept, in order.
        sinks: how many of them stand before what was dropped.
        dropped: tokens that were dropped.
    """

    first_position: int = 0
    ids: list[int] = field(default_factory=list[int])
    sinks: int = 0
    dropped: int = 0

    @property
    def said(self) -> int:
        """Tokens that the caller has said so far, dropped ones among them."""
        return len(self.ids) + self.dropped

    def begin(self, first_position: int) -> None:
        """Forget everything."""
        self.first_position = first_position
        self.ids.clear()
        self.sinks = self.dropped = 0

    def kept_of(self, said: int) -> int:
        """How many tokens are kept of the first ones, as the caller counts them.

        Raises:
            TensorError: the last of them was dropped.
        """
        if said <= self.sinks:
            return said
        if said < self.sinks + self.dropped:
            raise TensorError(
                f"position_ids go back to token {said}, but tokens {self.sinks} to "
                f"{self.sinks + self.dropped - 1} were dropped when the KV cache was full"
            )
        return said - self.dropped

    def rewind(self, said: int) -> None:
        """Forget what follows the first tokens, as the caller counts them.

        Raises:
            TensorError: as ``kept_of``.
        """
        del self.ids[self.kept_of(said) :]
        if said <= self.sinks:
            self.dropped = self.sinks = 0

    def settle(self) -> None:
        """Note that reading has ended: behind sinks alone there is nothing that was dropped."""
        if len(self.ids) <= self.sinks:
            self.dropped = self.sinks = 0

    def kept(self, tokens: NewTokens) -> NewTokens:
        """Give new tokens with the mask and the positions that what is kept of them has."""
        if not self.dropped:
            return tokens
        gone = slice(self.sinks, self.sinks + self.dropped)
        mask = np.delete(tokens.mask, gone)
        return NewTokens(tokens.ids, mask, tokens.positions - self.dropped)

    def drop(self, mask: Array, recent: int, sinks: int) -> NewTokens:
        """Drop the middle of the history.

        Args:
            mask: over the tokens that are kept now.
            recent: tokens at the end to keep.
            sinks: tokens at the beginning to keep.

        Returns:
            What is kept, to be read anew from the first position on.
        """
        old = np.array(self.ids, np.int64)
        sinks = min(sinks, len(old) - recent)
        chosen = np.r_[:sinks, len(old) - recent : len(old)]
        self.dropped += len(old) - len(chosen)
        self.sinks = sinks
        self.ids = old[chosen].tolist()
        positions = np.arange(len(chosen), dtype=np.int64) + self.first_position
        return NewTokens(old[chosen], mask[chosen], positions)
