"""Tokens to run on, whatever they are given as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.tensors.names import POSITIONS


@dataclass(frozen=True, slots=True)
class NewTokens:
    """Tokens to run on.

    Attributes:
        rows: for each input that follows tokens [n, ...]; position_ids, i64 [n] or [n, axes], are
            always among them.
        mask: i64, over all that is stored and new.
        pairs: values [n, stored + n] of inputs for pairs of a new token and a position, by name.
        last: the largest position of all that are read in the same inference, if these are a part
            of them.
    """

    rows: Mapping[str, Array]
    mask: Array
    pairs: Mapping[str, Array] = field(default_factory=dict[str, Array])
    last: int | None = None

    @staticmethod
    def none() -> NewTokens:
        """No tokens."""
        empty = np.empty(0, np.int64)
        return NewTokens({POSITIONS: empty}, empty)

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def positions(self) -> Array:
        """Where they are, i64 [n] or [n, axes]."""
        return self.rows[POSITIONS]

    @property
    def reach(self) -> int:
        """The largest position of the inference that they are read in; -1 if there is none."""
        return int(self.positions.max(initial=-1)) if self.last is None else self.last

    @property
    def counted(self) -> bool:
        """Whether positions count tokens: those of several axes (M-RoPE) need not."""
        return self.positions.ndim == 1

    @property
    def stored(self) -> int:
        """How many tokens the mask has before them."""
        return len(self.mask) - len(self)

    @property
    def identity(self) -> Array:
        """The bytes that tell tokens from others, u8 [n, bytes]."""
        flat = [np.ascontiguousarray(self.rows[name]) for name in sorted(self.rows)]
        return np.concatenate([each.reshape(len(self), -1).view(np.uint8) for each in flat], axis=1)

    def part(self, begin: int, end: int) -> NewTokens:
        """Some of them, after those before are stored."""
        rows = {name: values[begin:end] for name, values in self.rows.items()}
        seen = self.stored + end
        pairs = {name: values[begin:end, :seen] for name, values in self.pairs.items()}
        return NewTokens(rows, self.mask[:seen], pairs, self.reach)

    def moved(self, mask: Array, by: int) -> NewTokens:
        """The same after others, so that they are elsewhere."""
        last = None if self.last is None else self.last + by
        return NewTokens({**self.rows, POSITIONS: self.positions + by}, mask, last=last)
