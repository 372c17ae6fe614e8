"""Conversations of a runtime's batching as requests: of one row, and of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

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
        adapter: returns the values of the states of adapters, by name.
    """

    def __init__(self, batching: Batching, adapter: Callable[[], Mapping[str, Array]]) -> None:
        self._batching = batching
        self._adapter = adapter
        self.conversation: Conversation | None = None
        """The conversation; None before the first inference."""
        self._logits: Future[Array] = Future()

    @property
    def ready(self) -> bool:
        """True if the inference begun by ``start_async`` has ended."""
        return self._logits.done()

    @property
    def conversations(self) -> Sequence[Conversation]:
        """The conversation; none before the first inference."""
        return [] if self.conversation is None else [self.conversation]

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
            self.conversation = self._batching.open(self._adapter())
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

    def copy_from(self, other: SlotRequest) -> None:
        """Continue a copy of another request's conversation, which has begun."""
        if self.conversation is None:
            self.conversation = self._batching.open(self._adapter())
        self.conversation.copy_from(other.conversation)

    def another(self) -> SlotRequest:
        """Return an empty request of the same batching."""
        return SlotRequest(self._batching, self._adapter)


class SlotRows:
    """Request of several rows, each a conversation of a batching; ``runtime.InferRequest``.

    The first row that continues a conversation takes it over; for each further one, the
    conversation is copied to one that no row continues, or to a new one.

    Args:
        first: the request of row 0, which is empty.
    """

    def __init__(self, first: SlotRequest) -> None:
        self._rows = [first]
        """Requests of the rows of the last inference."""
        self._all = [first]
        """Requests of all rows so far; those without a row are free."""

    @property
    def ready(self) -> bool:
        """True if the inference begun by ``start_async`` has ended in all rows."""
        return all(row.ready for row in self._rows)

    @property
    def conversations(self) -> Sequence[Conversation]:
        """Conversations of the rows of the last inference."""
        return [one for row in self._rows for one in row.conversations]

    @property
    def cached_tokens(self) -> int:
        """Tokens of the prompt that the prefix cache had; see ``SlotRequest``."""
        return self._all[0].cached_tokens

    def infer(self, inputs: Mapping[str, Array], /) -> None:
        """Run one inference."""
        self.start_async(inputs)
        self.wait()

    def start_async(self, inputs: Mapping[str, Array], /) -> None:
        """Submit the new tokens of each row, which continues row ``beam_idx[b]``."""
        self._follow([self._rows[int(source)] for source in inputs["beam_idx"]])
        for number, row in enumerate(self._rows):
            row.start_async({name: rows[number : number + 1] for name, rows in inputs.items()})

    def wait(self) -> None:
        """Run steps of the batching until the inference has ended in all rows."""
        for row in self._rows:
            row.wait()

    def get_tensor(self, name: str, /) -> _Logits:
        """Return the last token's logits of each row; see ``SlotRequest``."""
        return _Logits(np.concatenate([row.get_tensor(name).data for row in self._rows]))

    def query_state(self) -> Sequence[VariableState]:
        """Return no variables: those of a batching are not visible."""
        return ()

    def rest(self) -> None:
        """Keep the tokens for the next generation."""
        for row in self._all:
            row.rest()

    def reset_state(self) -> None:
        """Leave the batching; the next inference begins a new conversation of one row."""
        for row in self._all:
            row.reset_state()
        self._rows, self._all = self._all[:1], self._all[:1]

    def _follow(self, sources: Sequence[SlotRequest]) -> None:
        """Give each row its request."""
        free = [one for one in self._all if one not in sources]
        rows: list[SlotRequest] = []
        for source in sources:
            row = source
            if source in rows:
                row = free.pop() if free else self._another()
                row.copy_from(source)
            rows.append(row)
        self._rows = rows

    def _another(self) -> SlotRequest:
        self._all.append(self._all[0].another())
        return self._all[-1]
