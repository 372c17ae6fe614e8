"""States of fixed size in device memory, and their values before the last run.

A run reads one buffer and writes another, which is copied back after the run, so a failing run
changes nothing. Unlike K and V, a state cannot be cut. Rewinds by a few tokens are common
(speculative decoding drops rejected tokens), so the values before the last run are kept. From there
on a conversation reads its tokens again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, Array, Device, TensorInfo
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import StateError
from npuw_layer.llm.request.variable_state import PartState
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.traits.variables import ArenaPart

if TYPE_CHECKING:
    from npuw_layer.llm.request.conversation import Conversation

_TORN = sys.maxsize
"""Number of tokens while states are being written: larger than any rewind's target."""


class LinearStates(ArenaPart):
    """States of a conversation in layers without K and V.

    Args:
        device: device of the states.
        variables: the variables, as static models read them.
    """

    def __init__(self, device: Device, variables: Sequence[TensorInfo]) -> None:
        self._names = [info.name for info in variables]
        super().__init__(
            device,
            [
                replace(info, name=prefix + info.name)
                for prefix in (READ_PREFIX, ASSIGN_PREFIX)
                for info in variables
            ],
        )
        self._before: tuple[int, dict[str, Array]] | None = None
        """Number of tokens in the states before the last run, and the values then."""
        self.tokens = 0
        """Number of tokens in the states."""
        self.forget()

    def advance(self, tokens: int) -> None:
        """Take over the new states of a run on a number of tokens."""
        self._before = self.tokens, {name: self.read(name).copy() for name in self._names}
        before, self.tokens = self.tokens, _TORN
        for name in self._names:
            self.read(name)[...] = self._tensor(ASSIGN_PREFIX, name)
        self.tokens = before + tokens

    def rewind(self, tokens: int) -> None:
        """Rewind to the first tokens, or further; the attribute ``tokens`` is then the result.

        Args:
            tokens: tokens to keep; no effect if there are no more.
        """
        if tokens >= self.tokens:
            return
        place, before = self.known(tokens), self._before
        if not place or before is None:
            self.forget()
            return
        self.tokens = _TORN
        for name, values in before[1].items():
            self.read(name)[...] = values
        self.tokens = place

    def known(self, tokens: int) -> int:
        """Return the number of tokens in the states after a rewind to the first ``tokens``."""
        if tokens >= self.tokens:
            return self.tokens
        known = self._before is not None and self._before[0] <= tokens
        return self._before[0] if known and self._before else 0

    def forget(self) -> None:
        """Reset the states to no tokens."""
        self.tokens = _TORN
        self._before = None
        for name in self._names:
            self.read(name)[...] = 0
        self.tokens = 0

    def hold(self, tokens: int) -> None:
        """Set the number of tokens; the values are set from outside."""
        self.tokens, self._before = tokens, None

    def tensors(self) -> Mapping[str, Array]:
        """Return the values of all variables, as views."""
        return {name: self.read(name) for name in self._names}

    def variable_states(
        self, talk: Conversation, check_idle: Callable[[], None]
    ) -> Sequence[LinearVariableState]:
        """Return the variables as a request exposes them."""
        return [LinearVariableState(name, talk, check_idle, self) for name in self._names]

    def read(self, name: str) -> Array:
        """Return the values of a variable; a view."""
        return self._tensor(READ_PREFIX, name)

    def _tensor(self, prefix: str, name: str) -> Array:
        return self._arena[prefix + name]


class LinearVariableState(PartState):
    """A state of fixed size as a variable of a request."""

    _part: LinearStates

    @property
    def state(self) -> Tensor:
        """State after all tokens, e.g. [1, channels, places]; a copy.

        Set it to a tensor of the same shape, and set K and V, too: they determine the number of
        tokens.

        Raises:
            StateError: the tensor does not fit.
            RequestBusy: the request is running.
        """
        self._check_idle()
        return Tensor(self._part.read(self._name).copy())

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        self._check_idle()
        values, states = values_of(tensor), self._part
        like = states.read(self._name)
        if values.shape != like.shape or values.dtype != like.dtype:
            raise StateError(
                f"state {self._name!r} is {like.dtype} {list(like.shape)}, not {values.dtype} "
                f"{list(values.shape)}"
            )
        states.hold(states.tokens)
        like[...] = values
