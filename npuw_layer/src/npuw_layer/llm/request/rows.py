"""Rows of a batch: each is a conversation of its own on the same static models, run in turn.

An inference with B rows has ``beam_idx`` i32 [B]: row b continues a copy of row ``beam_idx[b]`` of
the last inference, as in the model before the split, which gathers K and V by ``beam_idx``. The
first row that continues a conversation takes it over without a copy; for every further one, the
stored rows are copied to a conversation that no row continues, or to a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import StateError, TensorError
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.tensors.names import BEAMS


class Rows:
    """Conversations of a request, one for each row of the last inference.

    All rows share settings such as adapters. Conversations that no row continues are kept for later
    rows until ``reset``.

    Args:
        first: the conversation of row 0, which is not used yet.
        check_wanted: called before each run of a program; raises to end the inference there.
    """

    def __init__(self, first: Conversation, check_wanted: Callable[[], None]) -> None:
        self._compiled, self._check_wanted = first.compiled, check_wanted
        self._settings = [trait.settings() for trait in first.compiled.traits]
        first.parts.use(self._settings)
        self._first = first
        self.active = [first]
        """Conversations of all rows, in the order of the last inference."""
        self.pool = [first]
        """All conversations that hold device memory; those without a row are free."""

    @property
    def first(self) -> Conversation:
        """Conversation of row 0."""
        return self.active[0]

    def check(self, sources: Sequence[int], tokens: Sequence[NewTokens]) -> int:
        """Check the rows of an inference; nothing changes.

        Args:
            sources: for each row, the row of the last inference that it continues.
            tokens: the new tokens of each row.

        Returns:
            The number of last tokens of each row that will have logits.

        Raises:
            TensorError: the model allows only one row, a source does not exist, or the tokens of a
                row do not continue it.
            PromptTooLong, TooManyTokens, CapacityError: a row has no room for its tokens.
        """
        limits = [one.one_row_for for one in self._compiled.traits if one.one_row_for]
        if limits and len(sources) > 1:
            raise TensorError(
                f"{len(sources)} rows: a model with {limits[0]} runs one row; pass one row, or use "
                "a request for each"
            )
        counts: set[int] = set()
        for source, new in zip(self._sources(sources), tokens, strict=True):
            counts.add(source.rows_of(new))
            source.check(new)
        if len(counts) > 1:
            raise TensorError(
                f"some of the {len(sources)} rows begin a conversation, and others continue one; "
                "begin all, or continue all"
            )
        return counts.pop()

    def infer(self, sources: Sequence[int], tokens: Sequence[NewTokens]) -> Array:
        """Run on the new tokens of each row, which ``check`` has accepted.

        Returns:
            Logits f32 [B, n, V]; n as ``check`` returns.

        Raises:
            InferenceCancelled, DeviceError: rows are in the new order, and some have read their
                tokens.
        """
        self._follow(self._sources(sources))
        found: list[Array] = []
        for row, new in zip(self.active, tokens, strict=True):
            logits = row.infer(new)
            assert logits is not None  # no target was passed
            found.append(logits)  # each conversation has its own memory
        return np.concatenate(found)

    def check_one(self, act: str) -> None:
        """Check that there is one row.

        Args:
            act: method that requires one row, for the message.

        Raises:
            StateError: there are several rows.
        """
        if len(self.active) > 1:
            raise StateError(
                f"{act}: the request has {len(self.active)} rows, but a file holds one; infer "
                "only the row to keep, by its beam_idx, or call reset_state()"
            )

    def outputs(self) -> dict[str, Array]:
        """Return the outputs that follow tokens, except logits, f32 [B, tokens, width]."""
        first, *others = (row.reader.gathered.values() for row in self.active)
        if not others:
            return first
        return {
            name: np.concatenate([value, *(each[name] for each in others)])
            for name, value in first.items()
            if all(name in each for each in others)  # of a failed inference, some rows have none
        }

    def reset(self) -> None:
        """Begin a new conversation of one row, and free the memory of all other rows."""
        self._first.reset()
        self.active, self.pool = [self._first], [self._first]

    def _sources(self, sources: Sequence[int]) -> list[Conversation]:
        """Return the conversation that each row continues; empty ones are all alike.

        Raises:
            TensorError: a source does not exist.
        """
        last = self.active
        if not any(row.history.caller_count for row in last):
            last = [self._first] * len(sources)
        if not all(0 <= source < len(last) for source in sources):
            raise TensorError(
                f"{BEAMS} is {list(sources)}, but the last inference had {len(last)} rows; use 0 "
                f"to {len(last) - 1}, or call reset_state() to begin other rows"
            )
        return [last[source] for source in sources]

    def _follow(self, sources: Sequence[Conversation]) -> None:
        """Give each row its conversation; copy those that several rows continue."""
        free = [one for one in self.pool if one not in sources]
        self.active = rows = [sources[0]]  # extended row by row: a failed copy is no row
        for source in sources[1:]:
            row = source
            if source in rows:
                row = free.pop() if free else self._made()
                row.copy_from(source)
            rows.append(row)

    def _made(self) -> Conversation:
        made = Conversation(self._compiled, self._check_wanted)
        made.parts.use(self._settings)
        self.pool.append(made)
        return made
