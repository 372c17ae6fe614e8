"""The number of stored tokens as OpenVINO shows it: a variable that says how much of them stays."""

from __future__ import annotations

import numpy as np

from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import StateError
from npuw_layer.llm.request.variable_state import ConversationState
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.tensors.names import STORED_TOKENS


class StoredTokensState(ConversationState):
    """The variable npuw_stored_tokens_state of a request.

    It is always there, as in the original, which shows 0 without
    NPUW_LLM_ENABLE_CONTINUOUS_PREFILL; here it counts.
    """

    @property
    def state(self) -> Tensor:
        """How many tokens are stored, or were granted to stay, i64 [1]; a copy.

        It may be set, to propose how many tokens of the conversation the next prompt has in common
        with it. Read back, it tells how many are granted: as many, but where the cache was full and
        rows were given up. (The original grants whole chunks that prefill made; here rows lie alike
        for all models, so that any number is exact.) The next inference must go on there: the
        tokens after the granted ones alone, their positions one by one, and a mask over both. If it
        is refused, nothing has changed.

        Raises:
            StateError: it is set without NPUW_LLM_ENABLE_CONTINUOUS_PREFILL, or more are proposed
                than are stored.
            RequestBusy: the request is running.
        """
        self._check_idle()
        talk = self._conversation
        granted = talk.continuation.granted
        return Tensor(np.array([talk.history.said if granted is None else granted], np.int64))

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        self._check_idle()
        values = values_of(tensor)
        if values.dtype != np.int64 or values.shape != (1,):
            raise StateError(
                f"state {STORED_TOKENS!r} is int64 [1], not {values.dtype} {list(values.shape)}"
            )
        self._conversation.propose(int(values[0]))
