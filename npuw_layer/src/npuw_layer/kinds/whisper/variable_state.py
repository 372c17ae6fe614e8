"""K and V of the audio as OpenVINO shows them: variables of a request."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npuw_layer.api.tensor import Tensor
from npuw_layer.errors import StateError
from npuw_layer.kinds.whisper.conversation import WhisperConversation
from npuw_layer.llm.request.variable_state import VariableState
from npuw_layer.remote.tensor import AnyTensor, values_of


class CrossVariableState(VariableState):
    """K or V of one layer's cross-attention.

    Args:
        name: as ``kinds.whisper.names`` calls it.
        conversation: whose.
        check_idle: raises if the request is running.
    """

    def __init__(
        self, name: str, conversation: WhisperConversation, check_idle: Callable[[], None]
    ) -> None:
        super().__init__(name, conversation, check_idle)
        self._audio = conversation.audio

    @property
    def state(self) -> Tensor:
        """What the last prompt made of the audio, [1, heads, frames, width]; a copy.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        rows = self._audio.rows(self._name)
        return Tensor(np.ascontiguousarray(rows.transpose(1, 0, 2))[None])

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        """Replace it, until the next prompt.

        Raises:
            StateError: it does not fit.
            RequestBusy: the request is running.
        """
        self._check_idle()
        values, rows = values_of(tensor), self._audio.rows(self._name)
        frames, heads, width = rows.shape
        if values.shape != (1, heads, frames, width) or values.dtype != rows.dtype:
            raise StateError(
                f"state {self._name!r} is {rows.dtype} {[1, heads, frames, width]}, not "
                f"{values.dtype} {list(values.shape)}"
            )
        rows[...] = values[0].transpose(1, 0, 2)
