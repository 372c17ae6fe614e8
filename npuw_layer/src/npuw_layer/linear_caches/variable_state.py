"""A state of fixed size as OpenVINO shows it."""

from __future__ import annotations

from collections.abc import Callable

from npuw_layer.errors import StateError
from npuw_layer.llm.conversation import Conversation
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.tensor import Tensor


class LinearVariableState:
    """One variable of a request.

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

    @property
    def state(self) -> Tensor:
        """The state after all tokens, e.g. [1, channels, places]; a copy.

        It may be set to one of the same shape. Who sets it sets K and V, too, which say of how many
        tokens all of them are.

        Raises:
            StateError: a tensor does not fit.
            RequestBusy: the request is running.
        """
        self._check_idle()
        return Tensor(self._conversation.states.read(self._name).copy())

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        self._check_idle()
        values, states = values_of(tensor), self._conversation.states
        like = states.read(self._name)
        if values.shape != like.shape or values.dtype != like.dtype:
            raise StateError(
                f"state {self._name!r} is {like.dtype} {list(like.shape)}, not {values.dtype} "
                f"{list(values.shape)}"
            )
        states.hold(states.tokens)
        like[...] = values

    def reset(self) -> None:
        """Begin a new conversation: it is one with K and V.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._conversation.reset()
