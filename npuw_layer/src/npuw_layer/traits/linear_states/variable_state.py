"""State of fixed size as an OpenVINO variable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import StateError
from npuw_layer.llm.request.variable_state import PartState
from npuw_layer.remote.tensor import AnyTensor, values_of

if TYPE_CHECKING:
    from npuw_layer.traits.linear_states.states import LinearStates


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
