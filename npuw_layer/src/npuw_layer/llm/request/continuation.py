"""Continuous prefill: the caller proposes a number of tokens to keep, and reads the granted number.

        idle      the state npuw_stored_tokens_state is the number of tokens in the conversation
        pending   the state was set: it is the granted number, and the next inference must
                  continue there
        done      that inference passed checks, and has begun to change the conversation: idle again

A rejected inference changes nothing, and the proposal stays. An inference that fails later leaves
the tokens read so far; the state is then their number, and may be set again. After a reset, the
next prompt must be complete.

NPUW grants complete chunks of C tokens that prefill computed, C * floor(min(N, prompt - C,
prefilled) / C): its caches have different layouts for prefill and generate, and are cut by chunks.
Here all models read the same rows, so any proposed number is granted, whichever model computed the
rows. Fewer are granted only where a full cache gave up rows (NPUW_LLM_ON_FULL).

Source: docs/reference/npuw.md#continuous-prefill.
"""

from __future__ import annotations

import numpy as np

from npuw_layer.errors import StateError, TensorError
from npuw_layer.llm.kv.kv_rows import KVRows
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.tensors.names import STORED_TOKENS


class Continuation:
    """Granted number of tokens to keep, until an inference uses it.

    Args:
        supported: whether proposals are allowed (NPUW_LLM_ENABLE_CONTINUOUS_PREFILL).
    """

    def __init__(self, supported: bool) -> None:
        self._supported = supported
        self.granted: int | None = None
        """Tokens that stay, in the caller's count; None without a proposal."""

    def propose(self, tokens: int, history: History, rows: KVRows) -> None:
        """Propose to keep the first tokens.

        Raises:
            StateError: proposals are not allowed, or there are fewer tokens.
        """
        if not self._supported:
            raise StateError(
                f"{STORED_TOKENS}: the state is read-only; to propose a number of tokens to keep, "
                "set NPUW_LLM_ENABLE_CONTINUOUS_PREFILL = YES"
            )
        if not 0 <= tokens <= history.caller_count:
            raise StateError(
                f"{STORED_TOKENS} = {tokens}: only {history.caller_count} tokens are stored; "
                "propose at most that number"
            )
        # The largest number of first tokens, up to the proposed one, that a prompt can follow.
        if history.sinks < tokens < history.sinks + history.dropped:
            self.granted = history.sinks
        else:
            self.granted = tokens if rows.plain else min(tokens, rows.unbroken)

    def check(self, tokens: NewTokens, keep: int) -> None:
        """Reject an inference that does not continue after the granted tokens.

        Args:
            tokens: the new tokens.
            keep: number of tokens that they follow.

        Raises:
            TensorError: the tokens continue elsewhere, or their positions have gaps.
        """
        if self.granted is None:
            return
        begin = int(tokens.positions.flat[0])
        if keep != self.granted:
            wanted = (
                f"position_ids must begin at {begin - keep + self.granted}, not {begin}"
                if tokens.counted
                else f"attention_mask must have {self.granted} stored positions, not {keep}"
            )
            raise TensorError(
                f"{STORED_TOKENS}: {self.granted} tokens are kept, so {wanted}; pass only the "
                "tokens after them, or call reset_state() to start again"
            )
        one_by_one = np.arange(begin, begin + len(tokens))
        if tokens.counted and not np.array_equal(tokens.positions, one_by_one):
            raise TensorError(f"{STORED_TOKENS}: position_ids must be consecutive from {begin}")

    def end(self) -> None:
        """Withdraw the grant."""
        self.granted = None
