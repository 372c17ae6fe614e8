"""Continuous prefill: the caller proposes how many tokens stay, and is told how many do.

    idle      the state npuw_stored_tokens_state is the number of tokens in the conversation
    pending   it was set: the state is what was granted, and the next inference is to go on there
    done      that inference was checked, and has begun to change the conversation: idle again

An inference that is refused changes nothing, and the proposal stays. One that fails later leaves
what was read so far: the state then tells how much that is, and may be set again. A reset begins
anew, so that the next prompt is a whole one.

The original grants whole chunks of C tokens that prefill made, C * floor(min(N, prompt - C,
prefilled) / C): its caches are laid out differently for prefill and generate, and are cut by
chunks. Here all models read the same rows, so what is proposed is granted to the token, whoever
made the rows; less only where rows were given up because the cache was full (NPUW_LLM_ON_FULL).

Source: fact sheet npuw §c.9.
"""

from __future__ import annotations

import numpy as np

from npuw_layer.errors import StateError, TensorError
from npuw_layer.llm.kv.kv_rows import KVRows
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.tensors.names import STORED_TOKENS


class Continuation:
    """What was granted to a caller and not used yet.

    Args:
        supported: whether anything may be proposed (NPUW_LLM_ENABLE_CONTINUOUS_PREFILL).
    """

    def __init__(self, supported: bool) -> None:
        self._supported = supported
        self.granted: int | None = None
        """Tokens that stay, as the caller counts them; None if nothing was proposed."""

    def propose(self, tokens: int, history: History, rows: KVRows) -> None:
        """Ask that the first tokens stay.

        Raises:
            StateError: nothing may be proposed, or there are not so many.
        """
        if not self._supported:
            raise StateError(
                f"{STORED_TOKENS}: to set it proposes how many tokens stay, which needs "
                "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL = YES; without it the state is only read"
            )
        if not 0 <= tokens <= history.said:
            raise StateError(
                f"{STORED_TOKENS} = {tokens}: {history.said} tokens are stored; propose to keep "
                "as many, or fewer"
            )
        self.granted = _kept(tokens, history, rows)

    def check(self, tokens: NewTokens, keep: int) -> None:
        """Refuse an inference that does not go on where it was granted.

        Args:
            tokens: the new ones.
            keep: after how many tokens they go on.

        Raises:
            TensorError: it goes on elsewhere, or its positions leave some out.
        """
        if self.granted is None:
            return
        begin = int(tokens.positions.flat[0])
        if keep != self.granted:
            wanted = (
                f"position_ids begin at {begin - keep + self.granted}, not {begin}"
                if tokens.counted
                else f"attention_mask has {self.granted} before the new ones, not {keep}"
            )
            raise TensorError(
                f"{STORED_TOKENS}: {self.granted} tokens were granted to stay, so {wanted}; give "
                "the tokens after those alone, or reset_state() to begin anew"
            )
        one_by_one = np.arange(begin, begin + len(tokens))
        if tokens.counted and not np.array_equal(tokens.positions, one_by_one):
            raise TensorError(f"{STORED_TOKENS}: position_ids go on one by one from {begin}")

    def end(self) -> None:
        """Nothing is granted any more."""
        self.granted = None


def _kept(tokens: int, history: History, rows: KVRows) -> int:
    """The most of the first tokens that a prompt can go on after."""
    if history.sinks < tokens < history.sinks + history.dropped:
        return history.sinks
    return min(tokens, rows.unbroken) if not rows.plain else tokens
