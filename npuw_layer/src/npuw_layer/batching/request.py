"""One conversation of several: what a server talks to, from any thread."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol, Self, SupportsIndex, cast

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Uncopied
from npuw_layer.errors import TensorError
from npuw_layer.llm.trait import Settings


class Engine(Protocol):
    """What a conversation needs of who runs it."""

    def enqueue(self, request: BatchedRequest, ids: Array, keep: int) -> Future[Array]:
        """Note what a conversation goes on with; see ``BatchedRequest.submit``."""
        ...

    def leave(self, request: BatchedRequest) -> None:
        """Forget a conversation."""
        ...


class BatchedRequest(Uncopied):
    """A conversation that shares the device with others; ``ContinuousBatching.open`` makes it.

    Args:
        engine: runs it.
        settings: those of the conversation, one for each of the model's traits.
    """

    def __init__(self, engine: Engine, settings: Sequence[Settings | None]) -> None:
        self._engine = engine
        self.settings = settings
        """From the first token to the last; nobody sets them after it was opened."""
        self.stored = 0
        """Tokens of the conversation so far, those that are under way left out."""

    def submit(self, ids: Sequence[int] | Array, keep: int | None = None) -> Future[Array]:
        """Go on with tokens: a prompt, or the one that was chosen from the last logits.

        Returns at once; a later step of the engine fulfils the future. Its callbacks run in the
        thread that makes the steps, and may submit what comes next, but make no step themselves.
        What is cancelled before its turn changes nothing.

        Args:
            ids: token ids, at least one.
            keep: stored tokens that stay, all if not given; the ids follow them. So a conversation
                goes back, exactly as if it had never said more.

        Returns:
            The logits f32 [V] of the last token. It raises PromptTooLong or CapacityError if the
            conversation is too long, which hurts no other, or DeviceError.

        Raises:
            RequestError: the last tokens are not read yet, or the conversation is over.
            TensorError: the ids are no ids of the vocabulary, or ``keep`` is more than is stored.
        """
        tokens = np.asarray(ids)
        if tokens.shape == (0,):
            raise TensorError("there are no new tokens: ids are empty")
        if tokens.ndim != 1 or not len(tokens) or tokens.dtype.kind not in "iu":
            raise TensorError(f"ids are {tokens.dtype} {list(tokens.shape)}, not integers [tokens]")
        kept = self._kept(keep)
        return self._engine.enqueue(self, tokens.astype(np.int64), kept)

    def _kept(self, keep: object) -> int:
        """How many stored tokens stay."""
        if keep is None:
            return self.stored
        try:
            kept = operator.index(cast(SupportsIndex, keep))
        except TypeError:
            raise TensorError(f"keep is {keep!r}, and not a number of tokens") from None
        if not 0 <= kept <= self.stored:
            raise TensorError(f"keep is {kept}, but {self.stored} tokens are stored")
        return kept

    def close(self) -> None:
        """Leave: what is under way is cancelled, and who waits longest gets the place."""
        self._engine.leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
