"""A conversation's cache as OpenVINO shows it: one variable for each K and V."""

from __future__ import annotations

import numpy as np

from npuw_layer.llm.conversation import Conversation
from npuw_layer.tensor import Tensor


class VariableState:
    """One variable of a request.

    Args:
        name: its id in the model.
        conversation: whose.
    """

    def __init__(self, name: str, conversation: Conversation) -> None:
        self._name = name
        self._conversation = conversation

    @property
    def name(self) -> str:
        """The variable's id, as in ReadValue and Assign."""
        return self._name

    @property
    def state(self) -> Tensor:
        """The stored rows as the model sees them, [1, heads, tokens, channels]; a copy."""
        rows = self._conversation.cache.read(self._name)
        return Tensor(np.ascontiguousarray(rows.transpose(1, 0, 2))[None])

    def reset(self) -> None:
        """Begin a new conversation.

        The variables of a language model are its one cache: resetting one resets them all.
        """
        self._conversation.reset()
