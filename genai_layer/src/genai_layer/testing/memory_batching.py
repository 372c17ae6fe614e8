"""The toy runtime with batching: each conversation is a request of its own, and a step runs all.

A step reads one prompt, the oldest, and a token of each other conversation, as npuw_layer does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from genai_layer.runtime import Array, last_logits
from genai_layer.testing.inferences import inputs_for
from genai_layer.testing.memory_runtime import MemoryCompiledModel, MemoryCore, MemoryRequest


class MemoryConversation:
    """Conversation of a batching; satisfies ``abilities.Conversation``."""

    def __init__(self, request: MemoryRequest) -> None:
        self._request = request
        self._past = 0
        self._ids: list[int] = []
        self._logits: Future[Array] = Future()
        self.closed = False
        self.is_copy = False
        """True for a copy, which has a place even beyond the limit."""

    @property
    def pending(self) -> int:
        """Number of tokens to read."""
        return len(self._ids)

    @property
    def reads_prompt(self) -> bool:
        """True if the tokens to read are a prompt."""
        return len(self._ids) > 1 or (bool(self._ids) and not self._past)

    def submit(self, ids: Sequence[int], keep: int | None = None, /) -> Future[Array]:
        """Submit the next tokens, after those to keep."""
        if self.closed or self._ids or not ids:
            raise RuntimeError("closed, the last tokens are not read yet, or there are no tokens")
        self._past = self._past if keep is None else keep
        self._ids, self._logits = list(ids), Future()
        return self._logits

    def rest(self) -> None:
        """Keep the tokens."""

    def copy_from(self, other: MemoryConversation, /) -> None:
        """Continue a copy of another conversation."""
        if self.closed or self._ids or other.closed or not other._past:
            raise RuntimeError("closed, the last tokens are not read yet, or there are no tokens")
        self._request.copy_from(other._request)
        self._past, self.is_copy = other._past, True

    def close(self) -> None:
        """End the conversation."""
        self.closed = True
        self._logits.cancel()

    def read(self) -> None:
        """Read the submitted tokens."""
        inputs = inputs_for(self._ids, self._past)
        self._past += len(self._ids)
        self._ids = []
        try:
            self._request.infer(inputs)
        except RuntimeError as error:
            self._logits.set_exception(error)
        else:
            self._logits.set_result(last_logits(self._request))


class MemoryBatching:
    """Conversations with the toy; satisfies ``abilities.Batching``."""

    def __init__(self, compiled: MemoryCompiledModel, places: int) -> None:
        self._compiled = compiled
        self._places = places
        self._conversations: list[MemoryConversation] = []

    def open(self, adapter: Mapping[str, Array] = {}, /) -> MemoryConversation:
        """Begin a conversation; the toy has no adapters."""
        del adapter
        conversation = MemoryConversation(self._compiled.create_infer_request())
        self._conversations.append(conversation)
        return conversation

    def step(self) -> None:
        """Read one prompt, and a token of each other conversation that has a place."""
        self._conversations = [one for one in self._conversations if not one.closed]
        first = self._conversations[: self._places]
        placed = [*first, *(one for one in self._conversations[self._places :] if one.is_copy)]
        active = [one for one in placed if one.pending]
        prompts = [one for one in active if one.reads_prompt]
        for one in (*prompts[:1], *(one for one in active if not one.reads_prompt)):
            one.read()


class BatchingCompiledModel(MemoryCompiledModel):
    """Compiled toy; satisfies ``abilities.SupportsBatching``, too."""

    def create_batching(self, places: int, /) -> MemoryBatching:
        """Create a batching."""
        return MemoryBatching(self, places)


class BatchingCore(MemoryCore):
    """Toy runtime whose models batch; arguments as ``MemoryCore``."""

    def compile_model(
        self, model: str | Path, device_name: str, config: Mapping[str, Any], /
    ) -> BatchingCompiledModel:
        """Return the toy; store the options."""
        super().compile_model(model, device_name, config)
        return BatchingCompiledModel(self._table, self._capacity, self.blob | self.config)
