"""Sampling result as an OpenVINO variable, to be set after each step of candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import StateError
from npuw_layer.llm.request.variable_state import PartState
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.traits.trees.names import HEADER, MOST_CANDIDATES, SAMPLING_RESULT

if TYPE_CHECKING:
    from npuw_layer.traits.trees.candidates import Candidates


class SamplingState(PartState):
    """Variable npuw_eagle3_sampling_result of a request."""

    _part: Candidates

    @property
    def state(self) -> Tensor:
        """Sampling result since the last inference, i64 [514], zeros if not set; a copy.

        Set it once after an inference of candidates to [candidates, accepted ones, 1 or 0 for each
        candidate]; further elements are optional. The rows of K and V of accepted candidates stay,
        side by side after the rows stored before; the others are dropped. The next inference
        continues after the accepted tokens. Zeros have no effect. (NPUW moves rows when the next
        inference begins; here they move immediately.)

        Raises:
            StateError: the result contradicts the last inference, or itself; nothing has changed.
            RequestBusy: the request is running.
        """
        self._check_idle()
        return Tensor(self._part.result_set.copy())

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        self._check_idle()
        values = values_of(tensor)
        most = HEADER + MOST_CANDIDATES
        if values.dtype != np.int64 or values.ndim != 1 or not HEADER <= len(values) <= most:
            raise StateError(
                f"state {SAMPLING_RESULT!r} is int64 [{HEADER} to {most}], not {values.dtype} "
                f"{list(values.shape)}"
            )
        if self._part.settle(values):
            self._conversation.continuation.end()

    def reset(self) -> None:
        """Set the variable to zeros; dropped rows do not come back.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._part.result_set[:] = 0
