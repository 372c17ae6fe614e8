"""Device memory of a conversation's encoder states, and of K and V computed from them.

Prefill writes K and V to the memory that all generate variants read, without copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import StateError
from npuw_layer.llm.request.variable_state import PartState
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.traits.cross_attention.names import ENCODER_STATES
from npuw_layer.traits.variables import ArenaPart

if TYPE_CHECKING:
    from npuw_layer.llm.request.conversation import Conversation


class CrossBuffers(ArenaPart):
    """Encoder states, and K and V, of a decoder's conversation.

    Args:
        device: device of the buffers.
        infos: the encoder states, and K and V by variable.
    """

    persists = True
    shown_last = True

    @property
    def states(self) -> Array:
        """Encoder states f32 [1, frames, channels] for the next prompt."""
        return self._arena[ENCODER_STATES]

    @property
    def names(self) -> list[str]:
        """Names of the variables."""
        return [name for name in self._arena.tensors if name != ENCODER_STATES]

    def rows(self, name: str) -> Array:
        """Return the values of a variable, [frames, heads, width]; a view."""
        return self._arena[name][0]

    def variable_states(
        self, talk: Conversation, check_idle: Callable[[], None]
    ) -> Sequence[CrossVariableState]:
        """Return the variables as a request exposes them."""
        return [CrossVariableState(name, talk, check_idle, self) for name in self.names]

    def _tensor_of(self, port: str) -> str:
        return port.removeprefix(READ_PREFIX).removeprefix(ASSIGN_PREFIX)


class CrossVariableState(PartState):
    """K or V of one layer's cross-attention."""

    _part: CrossBuffers

    @property
    def state(self) -> Tensor:
        """K or V that the last prompt computed, [1, heads, frames, width]; a copy.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        rows = self._part.rows(self._name)
        return Tensor(np.ascontiguousarray(rows.transpose(1, 0, 2))[None])

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        """Replace the values until the next prompt.

        Raises:
            StateError: the tensor does not fit.
            RequestBusy: the request is running.
        """
        self._check_idle()
        values, rows = values_of(tensor), self._part.rows(self._name)
        frames, heads, width = rows.shape
        if values.shape != (1, heads, frames, width) or values.dtype != rows.dtype:
            raise StateError(
                f"state {self._name!r} is {rows.dtype} {[1, heads, frames, width]}, not "
                f"{values.dtype} {list(values.shape)}"
            )
        rows[...] = values[0].transpose(1, 0, 2)
