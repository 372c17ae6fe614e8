"""New tokens of an inference, be they ids or embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.tensors.names import POSITIONS


@dataclass(frozen=True, slots=True)
class NewTokens:
    """Tokens to run on, with all their inputs.

    Attributes:
        rows: values of each input that follows tokens, [n, ...]; always include position_ids, i64
            [n] or [n, axes].
        mask: i64, over all stored and new tokens.
        pairs: values [n, stored + n] of inputs for pairs of a new token and a position, by name.
        last: largest position of the whole inference, if these tokens are a part of it; else None.
    """

    rows: Mapping[str, Array]
    mask: Array
    pairs: Mapping[str, Array] = field(default_factory=dict[str, Array])
    last: int | None = None

    @staticmethod
    def none() -> NewTokens:
        """Return an empty set of tokens."""
        empty = np.empty(0, np.int64)
        return NewTokens({POSITIONS: empty}, empty)

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def positions(self) -> Array:
        """Positions of the tokens, i64 [n] or [n, axes]."""
        return self.rows[POSITIONS]

    @property
    def reach(self) -> int:
        """Largest position of the inference that reads the tokens; -1 without tokens."""
        return int(self.positions.max(initial=-1)) if self.last is None else self.last

    @property
    def counted(self) -> bool:
        """True if positions count tokens; positions of several axes (M-RoPE) need not."""
        return self.positions.ndim == 1

    @property
    def stored(self) -> int:
        """Number of tokens in the mask before the new ones."""
        return len(self.mask) - len(self)

    @property
    def identity(self) -> Array:
        """Bytes that identify each token, u8 [n, bytes]."""
        flat = [np.ascontiguousarray(self.rows[name]) for name in sorted(self.rows)]
        return np.concatenate([each.reshape(len(self), -1).view(np.uint8) for each in flat], axis=1)

    def part(self, begin: int, end: int) -> NewTokens:
        """Return a range of the tokens, to run once those before it are stored."""
        rows = {name: values[begin:end] for name, values in self.rows.items()}
        seen = self.stored + end
        pairs = {name: values[begin:end, :seen] for name, values in self.pairs.items()}
        return NewTokens(rows, self.mask[:seen], pairs, self.reach)

    def moved(self, mask: Array, by: int) -> NewTokens:
        """Return the tokens with another mask, and positions moved by ``by``."""
        last = None if self.last is None else self.last + by
        return NewTokens({**self.rows, POSITIONS: self.positions + by}, mask, last=last)
