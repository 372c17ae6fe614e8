"""Runtime requests of the running generations, alone or in a batching."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from genai_layer.abilities import Batching, SupportsBatching
from genai_layer.batching.request_pool import RequestPool
from genai_layer.batching.slot_requests import SlotRequest, SlotRows
from genai_layer.decoding.stored_tokens import StoredTokens
from genai_layer.errors import runtime_failures
from genai_layer.npu import StaticLengths
from genai_layer.runtime import Array, CompiledModel

_MOST_KEPT = 8
"""Most requests beside the batching that keep their tokens."""


class Places:
    """Requests of a compiled model, used again after a generation has ended.

    Generations take part in the model's batching, if it has one, with a conversation for each
    sequence. Otherwise each has a request of its own, with a row for each sequence.

    Args:
        compiled: the model.
        count: number of sequences that may run at a time.
        lengths: lengths of an NPU's programs.
        batches: False for a model whose batching cannot read the requests' inputs.
        adapter: returns the values of the states of adapters, by name.
    """

    def __init__(
        self,
        compiled: CompiledModel,
        count: int,
        lengths: StaticLengths | None = None,
        batches: bool = True,
        adapter: Callable[[], Mapping[str, Array]] = dict,
    ) -> None:
        self.count = count
        self.compiled = compiled
        self.batching: Batching | None = None
        """The model's batching, if it has one."""
        if batches and isinstance(compiled, SupportsBatching):
            self.batching = compiled.create_batching(count)
        self._lengths, self._adapter = lengths, adapter
        most = min(count, _MOST_KEPT) if self.batching is None else count
        self.requests = RequestPool(most, self._new_request)
        """Requests for the generations."""

    def _new_request(self) -> StoredTokens:
        if self.batching is None:
            request = self.compiled.create_infer_request()
        else:
            request = SlotRows(SlotRequest(self.batching, self._adapter))
        return StoredTokens(request, self.compiled, self._lengths)

    def step(self) -> None:
        """Run a step of the batching, if there is one.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        if self.batching is None:
            return
        with runtime_failures():
            self.batching.step()
