"""What a conversation takes next: tokens are refused before anything is changed for them."""

from __future__ import annotations

import numpy as np

from npuw_layer.errors import CapacityError, PromptTooLong, TensorError, TooManyTokens
from npuw_layer.llm.stages import ROPE_LEAD, Plan
from npuw_layer.llm.submodel import NewTokens
from npuw_layer.options import Options


class Admission:
    """The rules for new tokens.

    Args:
        options: lengths, and what happens when the cache is full.
        plan: the static models.
        takes_positions: whether the model wants position_ids.
    """

    def __init__(self, options: Options, plan: Plan, takes_positions: bool) -> None:
        self._options = options
        self._plan = plan
        self._tables = options.caches_rope and takes_positions

    @property
    def sinks(self) -> int:
        """Tokens at the beginning that stay when others are dropped; most of the room is not."""
        return min(self._options.sink_tokens, self._plan.lengths.max_prompt // 4)

    def is_step(self, count: int) -> bool:
        """Whether so many tokens that go on are one generate step."""
        return count <= self._plan.generate[0].tokens

    def check_place(self, tokens: NewTokens, keep: int, said: int) -> None:
        """Refuse positions and masks that do not fit what was said.

        Args:
            tokens: the new ones.
            keep: after how many tokens they go on.
            said: how many there are.

        Raises:
            TensorError: they do not.
        """
        if not 0 <= keep <= said:
            raise TensorError(
                f"position_ids begin at {int(tokens.positions[0])}, but {said} tokens are stored; "
                "they must continue there, or before"
            )
        if len(tokens.mask) != keep + len(tokens.ids):
            raise TensorError(
                f"attention_mask has {len(tokens.mask)} positions, not {keep} stored and "
                f"{len(tokens.ids)} new"
            )
        if self._tables:
            _check_angles(tokens, keep)

    def check_room(self, stored: int, count: int) -> None:
        """Refuse more tokens than go on with a conversation.

        Args:
            stored: tokens that stay.
            count: tokens that follow them.

        Raises:
            TooManyTokens, PromptTooLong, CapacityError: they are, and nothing may be dropped for
                them.
        """
        options, planned = self._options, self._plan
        limit, largest = planned.lengths.max_prompt, planned.generate[-1]
        if not self.is_step(count):
            if not options.enable_continuous_prefill:
                raise TooManyTokens(count, largest.tokens)
            droppable = options.on_full == "TRUNCATE" and self.sinks + count < limit
            if stored + count > limit and not droppable:
                raise PromptTooLong(stored + count, limit)
        elif options.on_full == "ERROR":
            if stored >= largest.past:
                raise CapacityError(stored, count, largest.past)
            if stored + count > planned.lengths.total:
                raise CapacityError(stored, count, planned.lengths.total)


def _check_angles(tokens: NewTokens, keep: int) -> None:
    """Refuse positions that no table of rotary angles has."""
    ahead = tokens.positions - np.arange(keep, keep + len(tokens.ids))
    if ahead.max() >= ROPE_LEAD or tokens.positions.min() < 0:
        raise TensorError(
            f"position_ids are up to {int(ahead.max())} ahead of the tokens, or negative; "
            f"tables of rotary angles allow {ROPE_LEAD - 1}; set NPUW_LLM_CACHE_ROPE to NO"
        )
