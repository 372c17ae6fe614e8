"""Token history of a conversation, in the caller's count and as kept.

The two differ once a full cache has dropped the middle of the history (NPUW_LLM_ON_FULL =
TRUNCATE): the caller keeps counting, while the kept tokens were read again at contiguous positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.tensors.names import IDS, POSITIONS
from npuw_layer.tensors.token_inputs import TokenInput


@dataclass(frozen=True, slots=True)
class SavedHistory:
    """Token history to continue in another conversation; see the attributes of ``History``."""

    first_position: int
    count: int
    sinks: int
    dropped: int
    rows: Mapping[str, Array]
    """Input values of the last tokens, equally many of each input."""

    @property
    def unknown(self) -> int:
        """Number of first tokens of which only the rows of K and V are known."""
        return self.count - max(map(len, self.rows.values()), default=0)


class History:
    """Tokens of a conversation.

    Ids are always recorded. Embeddings take as much memory as a prompt's activations, so they are
    recorded only if they may have to be read again.

    Args:
        inputs: inputs that follow tokens.
        rereads: whether tokens may have to be read again.
    """

    def __init__(self, inputs: Iterable[TokenInput], rereads: bool) -> None:
        names = (one.name for one in inputs if one.name != POSITIONS)
        self._names = tuple(name for name in names if rereads or name == IDS)
        self._known: list[tuple[Array, ...]] = []
        """Input values of the latest tokens, ordered as ``_names``; unknown tokens have none."""
        self.first_position = 0
        """First of the caller's position_ids."""
        self.unknown = 0
        """Number of first tokens whose rows were set from outside; their input values are
        unknown."""
        self.sinks = 0
        """Number of kept tokens before the dropped ones."""
        self.dropped = 0
        """Number of dropped tokens."""

    @property
    def count(self) -> int:
        """Number of kept tokens."""
        return self.unknown + len(self._known)

    @property
    def rows(self) -> Mapping[str, Sequence[Array]]:
        """Input values of the known tokens, by input name."""
        columns = zip(*self._known, strict=True) if self._known else ((),) * len(self._names)
        return dict(zip(self._names, columns, strict=False))

    @property
    def caller_count(self) -> int:
        """Number of tokens in the caller's count, including dropped ones."""
        return self.count + self.dropped

    @property
    def is_unknown(self) -> bool:
        """True if rows were set from outside and no tokens have followed."""
        return 0 < self.count == self.unknown

    @property
    def ids(self) -> list[int]:
        """Ids of the known tokens; empty if tokens are embeddings."""
        return [*map(int, self.rows.get(IDS, ()))]

    def begin(self, first_position: int) -> None:
        """Forget all tokens, and begin at a position."""
        self.forget(0)
        self.sinks = self.dropped = 0
        self.first_position = first_position

    def extend(self, tokens: NewTokens) -> None:
        """Record tokens that were read."""
        # A copy: the caller may overwrite its arrays.
        columns = [np.array(tokens.rows[name]) for name in self._names]
        self._known.extend([*zip(*columns, strict=True)] if columns else [()] * len(tokens))

    def hold(self, unknown: int) -> None:
        """Replace all tokens by unknown ones whose rows were set from outside."""
        self.begin(self.first_position)
        self.unknown = unknown

    def place_of(self, tokens: NewTokens) -> int:
        """Return the number of tokens that new ones follow, in the caller's count.

        The first position determines the number. With positions of several axes (M-RoPE) the mask
        does, which spans kept and new tokens: an image advances positions by less than its tokens.
        """
        if not tokens.counted:
            return tokens.stored
        return int(tokens.positions[0]) - self.first_position

    def kept_of(self, count: int) -> int:
        """Return the number of kept tokens among the first ``count`` in the caller's count.

        Raises:
            TensorError: the last of these tokens was dropped.
        """
        if count <= self.sinks:
            return count
        if count < self.sinks + self.dropped:
            raise TensorError(
                f"position_ids go back to token {count}, but tokens {self.sinks} to "
                f"{self.sinks + self.dropped - 1} were dropped when the KV cache was full"
            )
        return count - self.dropped

    def rewind(self, count: int) -> None:
        """Keep only the first ``count`` tokens, in the caller's count.

        Raises:
            TensorError: as ``kept_of``.
        """
        self.forget(self.kept_of(count))
        if count <= self.sinks:
            self.dropped = self.sinks = 0

    def settle(self) -> None:
        """Record the end of a reading: if only sinks are left, no gap of dropped tokens exists."""
        if self.count <= self.sinks:
            self.dropped = self.sinks = 0

    def kept(self, tokens: NewTokens) -> NewTokens:
        """Return new tokens with mask and positions in the count of kept tokens."""
        if not self.dropped:
            return tokens
        gone = slice(self.sinks, self.sinks + self.dropped)
        return tokens.moved(np.delete(tokens.mask, gone), -self.dropped)

    def since(self, begin: int, mask: Array) -> NewTokens:
        """Return the kept tokens from an index on, all of which must be known.

        Args:
            begin: number of kept tokens before them.
            mask: mask over all kept tokens.
        """
        known = begin - self.unknown
        rows = {name: np.array(values[known:]) for name, values in self.rows.items()}
        return NewTokens({**rows, POSITIONS: self._positions(self.count)[begin:]}, mask)

    def drop(self, tokens: NewTokens, recent: int, sinks: int) -> NewTokens:
        """Drop the middle of tokens that are about to be read, from the first position on.

        Args:
            tokens: the complete history, which is recorded again as it is read.
            recent: maximum number of last tokens to keep.
            sinks: number of first tokens to keep.

        Returns:
            The kept tokens.
        """
        count = len(tokens)
        recent = min(recent, count)
        sinks = min(sinks, count - recent)
        chosen = np.r_[:sinks, count - recent : count]
        self.forget(0)
        self.sinks = sinks
        self.dropped += count - len(chosen)
        rows = {name: values[chosen] for name, values in tokens.rows.items()}
        rows[POSITIONS] = self._positions(len(chosen))
        return NewTokens(rows, tokens.mask[chosen])

    def keep(self, begin: int, chosen: Array) -> None:
        """Keep some of the tokens from an index on, all of which must be known; forget the others.

        Args:
            begin: number of kept tokens before them.
            chosen: indices of the tokens to keep, counted from ``begin``, ascending.
        """
        known = begin - self.unknown
        self._known[known:] = [self._known[known + number] for number in chosen]

    def copy_from(self, other: History) -> None:
        """Take a copy of the history of another conversation with the same model."""
        self.first_position, self.unknown = other.first_position, other.unknown
        self.sinks, self.dropped = other.sinks, other.dropped
        self._known = [*other._known]

    def restore(self, saved: SavedHistory) -> None:
        """Take another conversation's history; all tokens are unknown if it lacks an input."""
        self.begin(saved.first_position)
        self.sinks, self.dropped = saved.sinks, saved.dropped
        known: list[tuple[Array, ...]] = []
        if {*self._names} <= saved.rows.keys():
            columns = [saved.rows[name] for name in self._names]
            known = [*zip(*columns, strict=True)] if columns else [()] * saved.count
        self.unknown = saved.count - len(known)
        self._known = known

    def _positions(self, count: int) -> Array:
        return np.arange(count, dtype=np.int64) + self.first_position

    def forget(self, kept: int) -> None:
        """Keep only the first ``kept`` tokens; the others will be recorded again."""
        del self._known[max(kept - self.unknown, 0) :]
        self.unknown = min(self.unknown, kept)
