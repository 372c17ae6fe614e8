"""What became of candidates, as OpenVINO shows it: a variable that is set after each step."""

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
    """The variable npuw_eagle3_sampling_result of a request."""

    _part: Candidates

    @property
    def state(self) -> Tensor:
        """What was told since the last inference, i64 [514]; zeros if nothing was; a copy.

        It may be set, once after an inference of candidates, to [candidates, accepted ones, 1 or 0
        for each candidate], with or without what is behind them. Their rows of K and V stay, side
        by side behind what was stored before, and those of the others go: the next inference goes
        on behind as many tokens. Zeros tell nothing. (The original moves rows when the next
        inference begins; here they are moved at once.)

        Raises:
            StateError: it does not fit the last inference, or itself; nothing has changed.
            RequestBusy: the request is running.
        """
        self._check_idle()
        return Tensor(self._part.told.copy())

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
        """Let it be zeros; rows that went do not come back.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._part.told[:] = 0
