"""Checks of new tokens, made before anything changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npuw_layer.errors import (
    CapacityError,
    PromptTooLong,
    StateError,
    TensorError,
    TooManyTokens,
)
from npuw_layer.llm.kv.kv_rows import KVRows
from npuw_layer.llm.plan.stages import ROPE_LEAD, LLMPlan
from npuw_layer.llm.request.history import History, SavedHistory
from npuw_layer.llm.request.life_cycle import Event
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.options import Options
from npuw_layer.tensors.names import POSITIONS
from npuw_layer.tensors.token_inputs import TokenInput

_POSITIONS = 1 << 63
"""Number of non-negative positions in i64."""


class Admission:
    """Rules for new tokens.

    Args:
        options: lengths, and what happens when the cache is full.
        plan: the static models.
        inputs: inputs with a row for each new token.
    """

    def __init__(self, options: Options, plan: LLMPlan, inputs: Sequence[TokenInput]) -> None:
        self._options = options
        self._plan = plan
        positions = [one for one in inputs if one.name == POSITIONS]
        several = any(one.axes for one in positions)
        self._tables = options.caches_rope and bool(positions) and not several

    @property
    def longest_prompt(self) -> int:
        """Maximum tokens that prefill reads, including stored ones.

        A sliding cache limits them to its window: tokens that prefill reads do not replace one
        another.
        """
        limit = self._plan.lengths.max_prompt
        slides = self._options.on_full == "SLIDE"
        return min(limit, self._plan.generate[-1].past) if slides else limit

    def is_step(self, count: int) -> bool:
        """Return whether ``count`` tokens that continue a conversation are one generate step."""
        return count <= self._plan.generate[0].tokens

    def event_of(self, tokens: NewTokens, history: History) -> Event:
        """Return the event that new tokens cause."""
        if self._begins(tokens, history):
            return Event.PROMPT
        return Event.STEP if self.is_step(len(tokens)) else Event.TEXT

    def _begins(self, tokens: NewTokens, history: History) -> bool:
        """Return whether tokens begin a new conversation."""
        first = not history.caller_count or not history.place_of(tokens)
        return first and len(tokens) > 1

    def check_place(self, tokens: NewTokens, keep: int, count: int) -> None:
        """Reject positions and masks that do not fit the token history.

        Args:
            tokens: the new tokens.
            keep: number of tokens that they follow.
            count: number of tokens so far.

        Raises:
            TensorError: positions or mask do not fit.
        """
        if not 0 <= keep <= count:
            where = (
                f"position_ids begin at {int(tokens.positions[0])}"
                if tokens.counted
                else f"attention_mask has {keep} positions before the {len(tokens)} new ones"
            )
            raise TensorError(f"{where}, but {count} tokens are stored; continue there or earlier")
        if tokens.stored != keep:
            raise TensorError(
                f"attention_mask has {len(tokens.mask)} positions, not {keep} stored and "
                f"{len(tokens)} new"
            )
        if self._tables:
            _check_angles(tokens, keep)

    def check_saved(self, saved: SavedHistory) -> None:
        """Reject a saved history that no token could follow here.

        Raises:
            StateError: no token could follow.
        """
        unknown, first, count = saved.unknown, saved.first_position, saved.count + saved.dropped
        if saved.dropped and unknown:  # dropping rereads the kept tokens, so all must be known
            raise StateError(f"it dropped {saved.dropped} tokens, but {unknown} others are unknown")
        if unknown == saved.count:
            return  # the next tokens determine the first position
        # All positions are as far ahead of tokens as the first; known tokens may be read again.
        fits = -unknown <= first < ROPE_LEAD if self._tables else first + count < _POSITIONS
        if not fits:
            raise StateError(
                f"its {count} tokens begin at position {first}, so no position is left after them"
            )

    def check_room(self, stored: int, count: int) -> None:
        """Reject more tokens than a conversation has room for.

        Args:
            stored: stored tokens that stay.
            count: new tokens.

        Raises:
            TooManyTokens, PromptTooLong, CapacityError: there is no room, and no token may be
                dropped.
        """
        options, planned = self._options, self._plan
        limit, largest = self.longest_prompt, planned.generate[-1]
        if not self.is_step(count):
            if not planned.resumes:
                raise TooManyTokens(count, largest.tokens)
            cut = options.on_full == "TRUNCATE" and options.sink_tokens + count < limit
            droppable = cut or options.on_full == "SLIDE"
            if stored + count > limit and not droppable:
                raise PromptTooLong(stored + count, limit)
        elif options.on_full == "ERROR":
            if stored >= largest.past:
                raise CapacityError(stored, count, largest.past)
            if stored + count > planned.lengths.total:
                raise CapacityError(stored, count, planned.lengths.total)


def _check_angles(tokens: NewTokens, keep: int) -> None:
    """Reject positions outside the tables of rotary factors."""
    ahead = tokens.positions - np.arange(keep, keep + len(tokens))
    if ahead.max() >= ROPE_LEAD or tokens.positions.min() < 0:
        raise TensorError(
            f"position_ids are up to {int(ahead.max())} ahead of the tokens, or negative; the RoPE "
            f"tables allow {ROPE_LEAD - 1}; set NPUW_LLM_CACHE_ROPE = NO"
        )


def check_rewind(count: int, kept: int, rows: KVRows, known: int, unknown: int) -> None:
    """Reject a rewind to a token that is not stored, or behind which unknown tokens are needed.

    Args:
        count: number of first tokens to keep, in the caller's count.
        kept: the same, without dropped tokens.
        rows: rows of the stored tokens.
        known: first token that parts read again.
        unknown: number of first tokens set from outside, which cannot be read again.

    Raises:
        TensorError: the last token to keep was dropped or replaced.
        StateError: a part must reread tokens that are unknown.
    """
    if kept and not rows.holds(kept - 1):
        raise TensorError(
            f"position_ids go back to token {count}, but the token before it was replaced by "
            "a newer one when the KV cache was full"
        )
    if known < min(kept, unknown):
        raise StateError(
            f"rewinding to token {kept} requires reading again from token {known} on, but "
            f"{unknown} tokens set by set_state are unknown; call reset_state()"
        )
