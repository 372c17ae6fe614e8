"""Routes of tokens to experts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npuw_layer.backends.protocols import Array


@dataclass(frozen=True, slots=True)
class Route:
    """The tokens that chose an expert, ascending, and the slot of each choice."""

    expert: int
    tokens: Array
    slots: Array

    def parts(self, count: int) -> Iterator[Route]:
        """Yield routes of at most ``count`` tokens each."""
        for begin in range(0, len(self.tokens), count):
            some = slice(begin, begin + count)
            yield Route(self.expert, self.tokens[some], self.slots[some])


def routes(ids: Array) -> dict[int, Route]:
    """Invert a router's choice.

    Args:
        ids: the experts of each token, integers [T, K].

    Returns:
        Routes of the chosen experts, by number, ascending.
    """
    flat = ids.reshape(-1)
    order = np.argsort(flat, kind="stable")
    chosen = flat[order]
    tokens, slots = np.divmod(order, ids.shape[1])
    begins = np.flatnonzero(np.diff(chosen, prepend=chosen[:1] - 1)).tolist()
    ends = [*begins[1:], len(chosen)]
    return {
        int(chosen[begin]): Route(int(chosen[begin]), tokens[begin:end], slots[begin:end])
        for begin, end in zip(begins, ends, strict=True)
    }
