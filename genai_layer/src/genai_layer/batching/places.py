"""Runtime requests of the running generations."""

from __future__ import annotations

import logging

from genai_layer.abilities import Batching, SupportsBatching
from genai_layer.batching.slot_request import SlotRequest
from genai_layer.errors import runtime_failures
from genai_layer.runtime import CompiledModel, InferRequest

_log = logging.getLogger(__name__)


class Places:
    """Requests of a compiled model, used again after a generation has ended.

    Generations of one sequence take part in the model's batching, if it has one. All others have a
    request of their own, with a row for each sequence.

    Args:
        compiled: the model.
        count: number of sequences that may run at a time.
        batches: False for a model whose batching cannot read the requests' inputs.
    """

    def __init__(self, compiled: CompiledModel, count: int, batches: bool = True) -> None:
        self.count = count
        self._compiled = compiled
        self._batching: Batching | None = None
        if batches and isinstance(compiled, SupportsBatching):
            self._batching = compiled.create_batching(count)
        self._free: list[InferRequest] = []

    @property
    def compiled(self) -> CompiledModel:
        """The model."""
        return self._compiled

    @property
    def batching(self) -> Batching | None:
        """The model's batching, if it has one."""
        return self._batching

    def take(self, sequences: int) -> InferRequest:
        """Return an empty request for a generation.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        if self._batching is not None and sequences == 1:
            return SlotRequest(self._batching)
        if self._free:
            return self._free.pop()
        with runtime_failures():
            return self._compiled.create_infer_request()

    def give_back(self, request: InferRequest) -> None:
        """Forget a request's tokens, and keep it for another generation unless it is broken."""
        try:
            request.reset_state()
        except RuntimeError as error:
            _log.warning("a request cannot be reset, and is not used again: %s", error)
            return
        if not isinstance(request, SlotRequest):
            self._free.append(request)

    def step(self) -> None:
        """Run a step of the batching, if there is one.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        if self._batching is None:
            return
        with runtime_failures():
            self._batching.step()
