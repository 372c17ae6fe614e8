"""Conversation of a runtime that batches, with the interface of a request of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from genai_layer.abilities import Batching, Conversation, ReportsCachedTokens
from genai_layer.runtime import Array, VariableState


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
        self._conversation: Conversation | None = None
        self._logits: Future[Array] = Future()

    @property
    def ready(self) -> bool:
        """True if the inference begun by ``start_async`` has ended."""
        return self._logits.done()

    @property
    def conversation(self) -> Conversation | None:
        """The conversation; None before the first inference."""
        return self._conversation

    @property
    def cached_tokens(self) -> int:
        """Tokens of the prompt that the prefix cache had; 0 if the runtime does not report them."""
        one = self._conversation
        return one.cached_tokens if isinstance(one, ReportsCachedTokens) else 0

    def infer(self, inputs: Mapping[str, Array], /) -> None:
        """Run one inference."""
        self.start_async(inputs)
        self.wait()

    def start_async(self, inputs: Mapping[str, Array], /) -> None:
        """Submit the new tokens; the batching knows those before them."""
        if self._conversation is None:
            self._conversation = self._batching.open()
        (ids,) = inputs["input_ids"]
        self._logits = self._conversation.submit(ids.tolist())

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
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None
