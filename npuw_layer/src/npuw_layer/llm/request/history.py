"""What was said: the tokens of a conversation, as the caller counts them and as they are kept.

They differ once the cache was full and the middle of the history was dropped (NPUW_LLM_ON_FULL =
TRUNCATE): the caller counts on, while what is kept was read anew, side by side.
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
class Said:
    """What one conversation tells another to go on with; see the attributes of ``History``."""

    first_position: int
    count: int
    sinks: int
    dropped: int
    rows: Mapping[str, Array]
    """Of the last tokens, as many of each."""

    @property
    def unknown(self) -> int:
        """How many of the first tokens are known by their rows of K and V alone."""
        return self.count - max(map(len, self.rows.values()), default=0)


class History:
    """The tokens of a conversation.

    Ids are always noted. Embeddings take as much memory as a prompt's activations do, so they are
    noted only if they may have to be read anew.

    Args:
        inputs: what tokens are given as.
        rereads: whether they may have to be read anew.
    """

    def __init__(self, inputs: Iterable[TokenInput], rereads: bool) -> None:
        names = (one.name for one in inputs if one.name != POSITIONS)
        self._names = tuple(name for name in names if rereads or name == IDS)
        self._known: list[tuple[Array, ...]] = []
        """Input values of the latest tokens, ordered as ``_names``; unknown tokens have none."""
        self.first_position = 0
        """What the caller's position_ids began with."""
        self.unknown = 0
        """How many of the first are rows that were set from outside: what they were is not known.
        """
        self.sinks = 0
        """How many of those that are kept stand before what was dropped."""
        self.dropped = 0
        """Tokens that were dropped."""

    @property
    def count(self) -> int:
        """Tokens that are kept."""
        return self.unknown + len(self._known)

    @property
    def rows(self) -> Mapping[str, Sequence[Array]]:
        """Input values of the known tokens, by input name."""
        columns = zip(*self._known, strict=True) if self._known else ((),) * len(self._names)
        return dict(zip(self._names, columns, strict=False))

    @property
    def said(self) -> int:
        """Tokens that the caller has said so far, dropped ones among them."""
        return self.count + self.dropped

    @property
    def is_unknown(self) -> bool:
        """Whether nothing was said since rows were set from outside."""
        return 0 < self.count == self.unknown

    @property
    def ids(self) -> list[int]:
        """The ids of those that are known; none if tokens are given as something else."""
        return [*map(int, self.rows.get(IDS, ()))]

    def begin(self, first_position: int) -> None:
        """Forget everything."""
        self.forget(0)
        self.sinks = self.dropped = 0
        self.first_position = first_position

    def extend(self, tokens: NewTokens) -> None:
        """Note tokens that were read."""
        # The caller may write over its own.
        columns = [np.array(tokens.rows[name]) for name in self._names]
        self._known.extend([*zip(*columns, strict=True)] if columns else [()] * len(tokens))

    def hold(self, unknown: int) -> None:
        """Hold rows that were set from outside, and nothing else."""
        self.forget(0)
        self.sinks = self.dropped = 0
        self.unknown = unknown

    def place_of(self, tokens: NewTokens) -> int:
        """After how many tokens new ones go on, as the caller counts them.

        Positions tell, from the first one on. Not those of several axes (M-RoPE): an image moves
        them on by less than it has tokens, so that the mask tells; it spans what stays and what is
        new.
        """
        if not tokens.counted:
            return tokens.stored
        return int(tokens.positions[0]) - self.first_position

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
        self.forget(self.kept_of(said))
        if said <= self.sinks:
            self.dropped = self.sinks = 0

    def settle(self) -> None:
        """Note that reading has ended: behind sinks alone there is nothing that was dropped."""
        if self.count <= self.sinks:
            self.dropped = self.sinks = 0

    def kept(self, tokens: NewTokens) -> NewTokens:
        """Give new tokens with the mask and the positions that what is kept of them has."""
        if not self.dropped:
            return tokens
        gone = slice(self.sinks, self.sinks + self.dropped)
        return tokens.moved(np.delete(tokens.mask, gone), -self.dropped)

    def since(self, begin: int, mask: Array) -> NewTokens:
        """Give the tokens that are kept from one on, none of which is unknown.

        Args:
            begin: how many stand before.
            mask: over all that are kept.
        """
        known = begin - self.unknown
        rows = {name: np.array(values[known:]) for name, values in self.rows.items()}
        return NewTokens({**rows, POSITIONS: self._positions(self.count)[begin:]}, mask)

    def drop(self, tokens: NewTokens, recent: int, sinks: int) -> NewTokens:
        """Drop the middle of tokens that are about to be read, from the first position on.

        Args:
            tokens: all of the history; it is noted anew as it is read.
            recent: tokens at the end to keep; all if there are no more.
            sinks: tokens at the beginning to keep.

        Returns:
            What is kept.
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
        """Keep some of the tokens from one on, none of which is unknown, and forget the others.

        Args:
            begin: how many stand before.
            chosen: their numbers from there on, ascending.
        """
        known = begin - self.unknown
        self._known[known:] = [self._known[known + number] for number in chosen]

    def restore(self, said: Said) -> None:
        """Take what another conversation noted; all is unknown where it noted less than this."""
        self.begin(said.first_position)
        self.sinks, self.dropped = said.sinks, said.dropped
        known: list[tuple[Array, ...]] = []
        if {*self._names} <= said.rows.keys():
            columns = [said.rows[name] for name in self._names]
            known = [*zip(*columns, strict=True)] if columns else [()] * said.count
        self.unknown = said.count - len(known)
        self._known = known

    def _positions(self, count: int) -> Array:
        return np.arange(count, dtype=np.int64) + self.first_position

    def forget(self, kept: int) -> None:
        """Keep the first of those that are kept alone: the others are noted anew."""
        del self._known[max(kept - self.unknown, 0) :]
        self.unknown = min(self.unknown, kept)
