"""Number of stored tokens as an OpenVINO variable; setting it proposes how many stay."""

from __future__ import annotations

import numpy as np

from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import StateError
from npuw_layer.llm.request.variable_state import ConversationState
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.tensors.names import STORED_TOKENS


class StoredTokensState(ConversationState):
    """Variable npuw_stored_tokens_state of a request.

    The variable always exists. Without NPUW_LLM_ENABLE_CONTINUOUS_PREFILL, NPUW shows 0; here the
    value is the number of tokens in that case, too.
    """

    @property
    def state(self) -> Tensor:
        """Number of tokens that are stored, or were granted to stay, i64 [1]; a copy.

        Set it to propose how many tokens of the conversation the next prompt shares. Read back, it
        is the granted number: the same, or fewer where a full cache gave up rows. (NPUW
        grants complete chunks that prefill computed; here all models share a layout, so any number
        is exact.) The next inference must continue there: only the tokens after the granted ones,
        consecutive positions, and a mask over both. If it is rejected, nothing has changed.

        Raises:
            StateError: the variable is set without NPUW_LLM_ENABLE_CONTINUOUS_PREFILL, or to more
                tokens than are stored.
            RequestBusy: the request is running.
        """
        self._check_idle()
        talk = self._conversation
        granted = talk.continuation.granted
        return Tensor(
            np.array([talk.history.caller_count if granted is None else granted], np.int64)
        )

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        self._check_idle()
        values = values_of(tensor)
        if values.dtype != np.int64 or values.shape != (1,):
            raise StateError(
                f"state {STORED_TOKENS!r} is int64 [1], not {values.dtype} {list(values.shape)}"
            )
        self._conversation.propose(int(values[0]))
