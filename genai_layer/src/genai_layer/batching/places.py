"""Runtime requests of the running generations.

A conversation of a runtime that batches has the interface of a request of one row.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from genai_layer.abilities import Batching, Conversation, ReportsCachedTokens, SupportsBatching
from genai_layer.errors import runtime_failures
from genai_layer.runtime import Array, CompiledModel, InferRequest, VariableState

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Logits:
    """Tensor f32 [1, 1, vocabulary]; satisfies ``runtime.Tensor``."""

    data: Array


class SlotRequest:
    """Request whose inferences are computed together with others'; ``runtime.InferRequest``.

    Args:
        batching: the batching in which it takes part.
    """

    def __init__(self, batching: Batching) -> None:
        self._batching = batching
        self.conversation: Conversation | None = None
        """The conversation; None before the first inference."""
        self._logits: Future[Array] = Future()

    @property
    def ready(self) -> bool:
        """True if the inference begun by ``start_async`` has ended."""
        return self._logits.done()

    @property
    def cached_tokens(self) -> int:
        """Tokens of the prompt that the prefix cache had; 0 if the runtime does not report them."""
        one = self.conversation
        return one.cached_tokens if isinstance(one, ReportsCachedTokens) else 0

    def infer(self, inputs: Mapping[str, Array], /) -> None:
        """Run one inference."""
        self.start_async(inputs)
        self.wait()

    def start_async(self, inputs: Mapping[str, Array], /) -> None:
        """Submit the new tokens; the batching knows those before them.

        Tokens at the first position begin another conversation.
        """
        (ids,) = inputs["input_ids"]
        if inputs["attention_mask"].shape[1] == len(ids):
            self.reset_state()
        if self.conversation is None:
            self.conversation = self._batching.open()
        self._logits = self.conversation.submit(ids.tolist())

    def wait(self) -> None:
        """Run steps of the batching until the inference has ended."""
        while not self.ready:
            self._batching.step()
        self._logits.result()

    def get_tensor(self, name: str, /) -> _Logits:
        """Return the last token's logits.

        Raises:
            RuntimeError: another tensor is requested.
        """
        if name != "logits":
            raise RuntimeError(f"{name}: a conversation of a batching has only logits")
        return _Logits(self._logits.result()[None, None])

    def query_state(self) -> Sequence[VariableState]:
        """Return no variables: those of a batching are not visible."""
        return ()

    def reset_state(self) -> None:
        """Leave the batching; the next inference begins a new conversation."""
        if self.conversation is not None:
            self.conversation.close()
            self.conversation = None


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
        self.compiled = compiled
        self.batching: Batching | None = None
        """The model's batching, if it has one."""
        if batches and isinstance(compiled, SupportsBatching):
            self.batching = compiled.create_batching(count)
        self._free: list[InferRequest] = []

    def take(self, sequences: int) -> InferRequest:
        """Return an empty request for a generation.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        if self.batching is not None and sequences == 1:
            return SlotRequest(self.batching)
        if self._free:
            return self._free.pop()
        with runtime_failures():
            return self.compiled.create_infer_request()

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
        if self.batching is None:
            return
        with runtime_failures():
            self.batching.step()
