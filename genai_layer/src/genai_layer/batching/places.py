"""Runtime requests of the running generations.

A conversation of a runtime that batches has the interface of a request of one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from genai_layer.abilities import Batching, Conversation, ReportsCachedTokens, SupportsBatching
from genai_layer.batching.request_pool import RequestPool
from genai_layer.decoding.stored_tokens import StoredTokens
from genai_layer.errors import runtime_failures
from genai_layer.npu import StaticLengths
from genai_layer.runtime import Array, CompiledModel, VariableState


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
        """Submit the new tokens; the batching knows those before them."""
        (ids,) = inputs["input_ids"]
        if self.conversation is None:
            self.conversation = self._batching.open()
        kept = inputs["attention_mask"].shape[1] - len(ids)
        self._logits = self.conversation.submit(ids.tolist(), kept)

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

    def rest(self) -> None:
        """Keep the tokens for the next generation."""
        if self.conversation is not None:
            self.conversation.rest()

    def reset_state(self) -> None:
        """Leave the batching; the next inference begins a new conversation."""
        if self.conversation is not None:
            self.conversation.close()
            self.conversation = None


_MOST_KEPT = 8
"""Most requests beside the batching that keep their tokens."""


class Places:
    """Requests of a compiled model, used again after a generation has ended.

    Generations of one sequence take part in the model's batching, if it has one. All others have a
    request of their own, with a row for each sequence.

    Args:
        compiled: the model.
        count: number of sequences that may run at a time.
        lengths: lengths of an NPU's programs.
        batches: False for a model whose batching cannot read the requests' inputs.
    """

    def __init__(
        self,
        compiled: CompiledModel,
        count: int,
        lengths: StaticLengths | None = None,
        batches: bool = True,
    ) -> None:
        self.count = count
        self.compiled = compiled
        self.batching: Batching | None = None
        """The model's batching, if it has one."""
        if batches and isinstance(compiled, SupportsBatching):
            self.batching = compiled.create_batching(count)
        self._lengths = lengths
        self._slots = RequestPool(count, self._new_slot)
        self._alone = RequestPool(min(count, _MOST_KEPT), self._new_alone)

    def pool(self, sequences: int) -> RequestPool:
        """Return the requests for generations of so many sequences."""
        return self._slots if self.batching is not None and sequences == 1 else self._alone

    def _new_slot(self) -> StoredTokens:
        assert self.batching is not None
        return StoredTokens(SlotRequest(self.batching), self.compiled, self._lengths)

    def _new_alone(self) -> StoredTokens:
        return StoredTokens(self.compiled.create_infer_request(), self.compiled, self._lengths)

    def step(self) -> None:
        """Run a step of the batching, if there is one.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        if self.batching is None:
            return
        with runtime_failures():
            self.batching.step()
