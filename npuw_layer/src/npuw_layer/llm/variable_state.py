"""A conversation's state as OpenVINO shows it: one variable for each K and V."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npuw_layer.errors import StateError
from npuw_layer.llm.conversation import Conversation
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.tensor import Tensor


class ConversationState:
    """A variable of a request that is its conversation's.

    Args:
        name: its id in the model.
        conversation: whose.
        check_idle: raises if the request is running.
    """

    def __init__(
        self, name: str, conversation: Conversation, check_idle: Callable[[], None]
    ) -> None:
        self._name = name
        self._conversation = conversation
        self._check_idle = check_idle

    @property
    def name(self) -> str:
        """The variable's id, as in ReadValue and Assign."""
        return self._name

    def reset(self) -> None:
        """Begin a new conversation.

        The variables of a language model are of one conversation: resetting one resets them all.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._conversation.reset()


class VariableState(ConversationState):
    """K or V of a layer."""

    @property
    def state(self) -> Tensor:
        """The stored rows as the model sees them, [1, heads, tokens, channels]; a copy.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        rows = self._conversation.cache.read(self._name)
        return Tensor(np.ascontiguousarray(rows.transpose(1, 0, 2))[None])

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        """Replace the rows.

        Args:
            tensor: [1, heads, tokens, channels], of the type that ``state`` has. The variables of a
                language model have equally many tokens: as many as are stored; or any number if
                nothing is, and then all variables are to be set.

        Raises:
            StateError: it does not fit.
            RequestBusy: the request is running.
            DeviceError: there is no memory left; nothing has changed.
        """
        self._check_idle()
        values = values_of(tensor)
        cache = self._conversation.cache
        like = cache.read(self._name)
        tokens = values.shape[2] if values.ndim == 4 else -1
        wanted = (1, like.shape[1], tokens, like.shape[2])
        if values.shape != wanted or values.dtype != like.dtype:
            raise StateError(
                f"state {self._name!r} is {like.dtype} [1, {like.shape[1]}, tokens, "
                f"{like.shape[2]}], not {values.dtype} {list(values.shape)}"
            )
        if not cache.rows.stored and 0 < tokens <= cache.rows.window:
            cache.make_room(tokens)
            cache.rows.restore(np.arange(tokens))
            self._conversation.hold(tokens)
        if tokens != cache.rows.stored:
            raise StateError(
                f"state {self._name!r}: {tokens} tokens, but {cache.rows.stored} are stored, and "
                f"there is room for {cache.rows.window}; reset_state() first to set another number"
            )
        cache.write(self._name, values[0].transpose(1, 0, 2))
