"""State of a conversation as OpenVINO variables, one for each K and V, and the number of tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import StateError
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.tensors.cache_axes import RANK, USUAL, CacheAxes
from npuw_layer.tensors.names import STORED_TOKENS


class RequestState(Protocol):
    """A variable of a request, as OpenVINO's ``VariableState``."""

    @property
    def name(self) -> str:
        """Id of the variable in the model."""
        ...

    @property
    def state(self) -> Tensor:
        """Value of the variable; a copy."""
        ...

    @state.setter
    def state(self, tensor: AnyTensor) -> None: ...

    def reset(self) -> None:
        """Reset the variable."""
        ...


@dataclass(eq=False, repr=False)
class ConversationState:
    """A variable of a request, backed by its conversation."""

    _name: str
    """Id of the variable in the model."""
    _conversation: Conversation
    """Conversation of the request."""
    _check_idle: Callable[[], None]
    """Raises if the request is running."""

    @property
    def name(self) -> str:
        """Id of the variable, as in ReadValue and Assign."""
        return self._name

    def reset(self) -> None:
        """Begin a new conversation.

        All variables of a language model belong to one conversation: resetting one resets all.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._conversation.reset()


@dataclass(eq=False, repr=False)
class PartState(ConversationState):
    """A variable held by a part of the conversation."""

    _part: Any
    """Part of the conversation that holds the variable, whose class each variable declares."""


@dataclass(eq=False, repr=False)
class VariableState(ConversationState):
    """K or V of a layer as a variable."""

    _axes: CacheAxes = USUAL
    """Axes of sequences and tokens in the model."""

    @property
    def state(self) -> Tensor:
        """Stored rows in the model's axes, usually [1, heads, tokens, width]; a copy.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        rows = self._conversation.cache.read(self._name)
        usual = rows.transpose(1, 0, 2)[None]
        return Tensor(np.ascontiguousarray(usual.transpose(self._axes.order)))

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        """Replace the rows.

        Args:
            tensor: rows in the axes and the type of ``state``. All variables of a language model
                have as many tokens as are stored. If none are stored, any number is
                allowed, and all variables must be set.

        Raises:
            StateError: the tensor does not fit.
            RequestBusy: the request is running.
            DeviceError: device memory is exhausted; nothing has changed.
        """
        self._check_idle()
        cache = self._conversation.cache
        rows = self._rows_of(values_of(tensor), cache.read(self._name))
        tokens = len(rows)
        if not cache.rows.stored and 0 < tokens <= cache.rows.window:
            cache.make_room(tokens)
            cache.rows.restore(np.arange(tokens))
            self._conversation.hold(tokens)
        if tokens != cache.rows.stored:
            raise StateError(
                f"state {self._name!r}: {tokens} tokens, but {cache.rows.stored} are stored, and "
                f"there is room for {cache.rows.window}; reset_state() first to set another number"
            )
        cache.write(self._name, rows)

    def _rows_of(self, values: Array, like: Array) -> Array:
        """Return rows [tokens, heads, width] from a value in the model's axes.

        Raises:
            StateError: values do not have the axes or the type of stored rows.
        """
        usual = values.transpose(self._axes.back) if values.ndim == RANK else values
        if (
            values.ndim != RANK
            or (usual.shape[0], usual.shape[1], usual.shape[3]) != (1, *like.shape[1:])
            or values.dtype != like.dtype
        ):
            counted = ["1", str(like.shape[1]), "tokens", str(like.shape[2])]
            wanted = ", ".join(counted[axis] for axis in self._axes.order)
            raise StateError(
                f"state {self._name!r} is {like.dtype} [{wanted}], not {values.dtype} "
                f"{list(values.shape)}"
            )
        return usual[0].transpose(1, 0, 2)


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
        talk = self._conversation
        talk.continuation.propose(int(values[0]), talk.history, talk.cache.rows)
