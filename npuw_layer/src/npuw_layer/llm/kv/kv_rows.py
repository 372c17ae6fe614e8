"""Which token each row of the KV cache holds: whole numbers only, no tensors.

Usually row n holds token n. When the cache is full and slides, a new token takes the row of the
oldest one, which attention does not mind: what counts are the positions that keys were made with.
"""

from __future__ import annotations

import numpy as np

from npuw_layer.backends.protocols import Array

_FREE = -1


class KVRows:
    """The tokens in a cache; they are numbered as they come, from 0.

    Args:
        rows: what the cache holds.
        window: rows that are used before new tokens take the place of old ones.
        sinks: tokens at the beginning that keep their place.
    """

    def __init__(self, rows: int, window: int, sinks: int = 0) -> None:
        self._window = window
        self._sinks = sinks
        self._dirty = np.zeros(rows, np.bool_)
        """Rows that were written to since they were zeros."""
        self._now: tuple[int, Array | None] = 0, None
        """The number of tokens so far, and the token of each row; None if row n holds token n. The
        pair is replaced as a whole, so that an interrupt never leaves it half changed."""

    def __len__(self) -> int:
        return len(self._dirty)

    @property
    def tokens(self) -> int:
        """Tokens that were said so far: the number of the next one."""
        return self._now[0]

    @property
    def stored(self) -> int:
        """Tokens in the cache."""
        tokens, held = self._now
        return tokens if held is None else int((held >= 0).sum())

    @property
    def plain(self) -> bool:
        """Whether row n holds token n."""
        return self._now[1] is None

    def numbers(self) -> Array:
        """The tokens that are stored, by their numbers, ascending, i64 [stored]."""
        return self._held()[self.order()]

    @property
    def window(self) -> int:
        """Tokens that it holds before new ones take the place of old ones."""
        return self._window

    def restore(self, numbers: Array) -> Array:
        """Hold tokens in the first rows, and no others; the oldest give way if there are too many.

        Args:
            numbers: of the tokens, ascending.

        Returns:
            Which of them are held, i64.
        """
        surplus = max(len(numbers) - self._window, 0)
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
        """The first rows, among which all tokens in the cache are."""
        tokens, held = self._now
        return tokens if held is None else self._window

    def holds(self, token: int) -> bool:
        """Whether a token is stored."""
        tokens, held = self._now
        return 0 <= token < tokens and (held is None or bool((held == token).any()))

    @property
    def unbroken(self) -> int:
        """The first tokens, up to one that is no longer stored."""
        numbers = self.numbers()
        return int((numbers == np.arange(len(numbers))).sum())

    def order(self) -> Array:
        """The rows in use, in the order of their tokens, i64 [stored]."""
        tokens, held = self._now
        if held is None:
            return np.arange(tokens)
        used = np.flatnonzero(held >= 0)
        return used[np.argsort(held[used])]

    def expect(self, count: int) -> None:
        """Note that rows behind the last one in use are about to be written to, used or not."""
        self._dirty[self.tokens : self.tokens + count] = True

    def append(self, count: int) -> None:
        """Note new tokens in the rows behind the last one in use; they were expected."""
        tokens, held = self._now
        if held is not None:
            held = self._held()
            held[tokens : tokens + count] = np.arange(tokens, tokens + count)
        self._now = tokens + count, held

    def place(self, count: int) -> int | Array:
        """Give new tokens rows: behind the last one, or those of the oldest tokens.

        Returns:
            The row of the first one; or, once the window is full, i64 [count].
        """
        begin = self.tokens
        if self.plain and begin + count <= self._window:
            self.expect(count)
            self.append(count)
            return begin
        held = self._held()
        # Free rows are older than any token, sinks are newer.
        used = held[: self._window]
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
        """Give the mask over the first rows: 0 where a row is free.

        Args:
            mask: i64, one for each token.
            rows: what a model reads.
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
        """Give the rows among the first that hold what was forgotten, i64."""
        tokens, held = self._now
        if held is None:
            return np.flatnonzero(self._dirty[tokens:rows]) + tokens
        return np.flatnonzero(self._dirty[:rows] & (held[:rows] < 0))

    def clean(self, rows: Array) -> None:
        """Note that rows that nobody uses are zeros again."""
        self._dirty[rows] = False

    def _held(self) -> Array:
        """Return the token number of each row, i64 [rows]; a copy."""
        tokens, held = self._now
        if held is not None:
            return held.copy()
        numbers = np.arange(len(self))
        return np.where(numbers < tokens, numbers, _FREE)
