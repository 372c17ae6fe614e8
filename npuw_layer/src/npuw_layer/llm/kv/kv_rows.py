"""Bookkeeping of the token in each row of the KV cache; integers only, no tensors.

Usually row n holds token n. When the cache is full and slides, a new token takes the row of the
oldest one. The order of rows does not affect attention: keys carry their positions.
"""

from __future__ import annotations

import numpy as np

from npuw_layer.backends.protocols import Array

_FREE = -1


class KVRows:
    """Tokens in a cache, numbered from 0 as they arrive.

    Args:
        rows: rows of the cache.
        window: rows to fill before new tokens replace old ones.
        sinks: first tokens, which are never replaced.
    """

    def __init__(self, rows: int, window: int, sinks: int = 0) -> None:
        self.window = window
        """Number of tokens that fit before new ones replace old ones."""
        self._sinks = sinks
        self._dirty = np.zeros(rows, np.bool_)
        """Rows that may be non-zero: written since they were last zeroed."""
        self._now: tuple[int, Array | None] = 0, None
        """Number of tokens so far, and the token of each row; None if row n holds token n. The
        pair is replaced as a whole, so an interrupt never leaves it half changed."""

    def __len__(self) -> int:
        return len(self._dirty)

    @property
    def tokens(self) -> int:
        """Number of tokens so far, which is the number of the next token."""
        return self._now[0]

    @property
    def stored(self) -> int:
        """Number of tokens in the cache."""
        tokens, held = self._now
        return tokens if held is None else int((held >= 0).sum())

    @property
    def plain(self) -> bool:
        """True if row n holds token n."""
        return self._now[1] is None

    def numbers(self) -> Array:
        """Return the numbers of the stored tokens, ascending, i64 [stored]."""
        return self._held()[self.order()]

    def restore(self, numbers: Array) -> Array:
        """Replace all tokens, from the first row on; drop the oldest if there are too many.

        Args:
            numbers: numbers of the tokens, ascending.

        Returns:
            Indices of the tokens that are kept, i64.
        """
        surplus = max(len(numbers) - self.window, 0)
        sinks = int((numbers < self._sinks).sum())
        chosen = (
            np.r_[:sinks, sinks + surplus : len(numbers)] if surplus else np.arange(len(numbers))
        )
        count = len(chosen)
        held = np.full(len(self), _FREE, np.int64)
        held[:count] = numbers[chosen]
        self._dirty[:count] = True
        tokens = int(numbers[-1]) + 1 if count else 0
        self._now = tokens, None if tokens == count else held
        return chosen

    @property
    def reach(self) -> int:
        """Number of first rows that contain all stored tokens."""
        tokens, held = self._now
        return tokens if held is None else self.window

    def holds(self, token: int) -> bool:
        """Return whether a token is stored."""
        tokens, held = self._now
        return 0 <= token < tokens and (held is None or bool((held == token).any()))

    @property
    def unbroken(self) -> int:
        """Number of first tokens before the first one that is not stored."""
        numbers = self.numbers()
        return int((numbers == np.arange(len(numbers))).sum())

    def order(self) -> Array:
        """Return the rows in use in the order of their tokens, i64 [stored]."""
        tokens, held = self._now
        if held is None:
            return np.arange(tokens)
        used = np.flatnonzero(held >= 0)
        return used[np.argsort(held[used])]

    def expect(self, count: int) -> None:
        """Record that rows after the last one in use will be written, used or not."""
        self._dirty[self.tokens : self.tokens + count] = True

    def append(self, count: int) -> None:
        """Record new tokens in the rows after the last one in use, which ``expect`` announced."""
        tokens, held = self._now
        if held is not None:
            held = self._held()
            held[tokens : tokens + count] = np.arange(tokens, tokens + count)
        self._now = tokens + count, held

    def place(self, count: int) -> int | Array:
        """Assign rows to new tokens: after the last one, or those of the oldest tokens.

        Returns:
            The row of the first token; once the window is full, all rows, i64 [count].
        """
        begin = self.tokens
        if self.plain and begin + count <= self.window:
            self.expect(count)
            self.append(count)
            return begin
        held = self._held()
        # Free rows count as oldest, sinks as newest.
        used = held[: self.window]
        age = np.where((used >= 0) & (used < self._sinks), begin, used)
        rows = np.argsort(age, kind="stable")[:count]
        held[rows] = np.arange(begin, begin + count)
        self._dirty[rows] = True
        self._now = begin + count, held
        return rows

    def truncate(self, tokens: int) -> None:
        """Forget all tokens from a number on."""
        before, held = self._now
        if tokens >= before:
            return
        if held is not None:
            held = np.where(held >= tokens, _FREE, held)
            if np.array_equal(held[:tokens], np.arange(tokens)):
                held = None
        self._now = tokens, held

    def columns(self, mask: Array, rows: int) -> Array:
        """Return the mask over the first rows: 0 for a free row.

        Args:
            mask: i64, one value for each token.
            rows: rows that a model reads.
        """
        found = np.zeros(rows, np.int64)
        tokens, held = self._now
        if held is None:
            found[:tokens] = mask[:tokens]
        else:
            held = held[:rows]
            found[held >= 0] = mask[held[held >= 0]]
        return found

    def forgotten(self, rows: int) -> Array:
        """Return the first rows that hold forgotten tokens and are not zeroed, i64."""
        tokens, held = self._now
        if held is None:
            return np.flatnonzero(self._dirty[tokens:rows]) + tokens
        return np.flatnonzero(self._dirty[:rows] & (held[:rows] < 0))

    def clean(self, rows: Array) -> None:
        """Record that unused rows are zeroed."""
        self._dirty[rows] = False

    def _held(self) -> Array:
        """Return the token number of each row, i64 [rows]; a copy."""
        tokens, held = self._now
        if held is not None:
            return held.copy()
        numbers = np.arange(len(self))
        return np.where(numbers < tokens, numbers, _FREE)
