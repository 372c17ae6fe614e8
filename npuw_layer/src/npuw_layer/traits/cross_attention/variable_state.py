"""K and V of the audio as OpenVINO variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import StateError
from npuw_layer.llm.request.variable_state import PartState
from npuw_layer.remote.tensor import AnyTensor, values_of

if TYPE_CHECKING:
    from npuw_layer.traits.cross_attention.buffers import CrossBuffers


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
