"""Which token each row of the KV cache holds: whole numbers only, no tensors.

Usually row n holds token n. When the cache is full and slides, a new token takes the row of the
oldest one, which attention does not mind: what counts are the positions that keys were made with.
"""

from __future__ import annotations

import numpy as np

from npuw_layer.ports import Array

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
        self._held = np.full(rows, _FREE, np.int64)
        self._dirty = np.zeros(rows, np.bool_)
        self._plain = True
        self.tokens = 0
        """Tokens that were said so far: the number of the next one."""

    def __len__(self) -> int:
        return len(self._held)

    @property
    def stored(self) -> int:
        """Tokens in the cache."""
        return self.tokens if self._plain else int((self._held >= 0).sum())

    @property
    def plain(self) -> bool:
        """Whether row n holds token n."""
        return self._plain

    def numbers(self) -> Array:
        """The tokens that are stored, by their numbers, ascending, i64 [stored]."""
        return self._held[self.order()]

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
        self.truncate(0)
        surplus = max(len(numbers) - self._window, 0)
        sinks = int((numbers < self._sinks).sum())
        chosen = (
            np.r_[:sinks, sinks + surplus : len(numbers)] if surplus else np.arange(len(numbers))
        )
        count = len(chosen)
        self._held[:count] = numbers[chosen]
        self._dirty[:count] = True
        self.tokens = int(numbers[-1]) + 1 if count else 0
        self._plain = self.tokens == count
        return chosen

    @property
    def reach(self) -> int:
        """The first rows, among which all tokens in the cache are."""
        return self.tokens if self._plain else self._window

    def holds(self, token: int) -> bool:
        """Whether a token is stored."""
        return 0 <= token < self.tokens and (self._plain or bool((self._held == token).any()))

    @property
    def unbroken(self) -> int:
        """The first tokens, up to one that is no longer stored."""
        numbers = self.numbers()
        return int((numbers == np.arange(len(numbers))).sum())

    def order(self) -> Array:
        """The rows in use, in the order of their tokens, i64 [stored]."""
        if self._plain:
            return np.arange(self.tokens)
        used = np.flatnonzero(self._held >= 0)
        return used[np.argsort(self._held[used])]

    def expect(self, count: int) -> None:
        """Note that rows behind the last one in use are about to be written to, used or not."""
        self._dirty[self.tokens : self.tokens + count] = True

    def append(self, count: int) -> None:
        """Note new tokens in the rows behind the last one in use; they were expected."""
        begin = self.tokens
        self._held[begin : begin + count] = np.arange(begin, begin + count)
        self.tokens += count

    def place(self, count: int) -> int | Array:
        """Give new tokens rows: behind the last one, or those of the oldest tokens.

        Returns:
            The row of the first one; or, once the window is full, i64 [count].
        """
        begin = self.tokens
        if self._plain and begin + count <= self._window:
            self.expect(count)
            self.append(count)
            return begin
        held = self._held[: self._window]
        # Free rows are older than any token, sinks are newer.
        age = np.where((held >= 0) & (held < self._sinks), begin, held)
        rows = np.argsort(age, kind="stable")[:count]
        self._held[rows] = np.arange(begin, begin + count)
        self._dirty[rows] = True
        self.tokens, self._plain = begin + count, False
        return rows

    def truncate(self, tokens: int) -> None:
        """Forget all tokens from a number on."""
        if tokens >= self.tokens:
            return
        if self._plain:
            self._held[tokens : self.tokens] = _FREE
        else:
            self._held[self._held >= tokens] = _FREE
            self._plain = np.array_equal(self._held[:tokens], np.arange(tokens))
        self.tokens = tokens

    def columns(self, mask: Array, rows: int) -> Array:
        """Give the mask over the first rows: 0 where a row is free.

        Args:
            mask: i64, one for each token.
            rows: what a model reads.
        """
        found = np.zeros(rows, np.int64)
        if self._plain:
            found[: self.tokens] = mask[: self.tokens]
        else:
            held = self._held[:rows]
            found[held >= 0] = mask[held[held >= 0]]
        return found

    def take_forgotten(self, rows: int) -> Array:
        """Give the rows among the first that hold what was forgotten, i64; they become clean."""
        forgotten = np.flatnonzero(self._dirty[:rows] & (self._held[:rows] < 0))
        self._dirty[forgotten] = False
        return forgotten
