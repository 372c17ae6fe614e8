"""One conversation of several: the object that a server uses, from any thread."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Self, SupportsIndex, cast

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Uncopied
from npuw_layer.errors import TensorError
from npuw_layer.llm.trait import Settings

if TYPE_CHECKING:
    from npuw_layer.batching.engine import ContinuousBatching


class BatchedRequest(Uncopied):
    """A conversation that shares the device with others; ``ContinuousBatching.open`` makes it.

    Args:
        engine: the engine that runs the conversation.
        settings: the conversation's settings, one for each of the model's traits.
    """

    def __init__(self, engine: ContinuousBatching, settings: Sequence[Settings | None]) -> None:
        self._engine = engine
        self.settings = settings
        """Settings, fixed from the first tokens on."""
        self.stored = 0
        """Stored tokens of the conversation, without pending ones."""
        self.cached_tokens = 0
        """Tokens of the last prompt that the prefix cache had."""

    def submit(self, ids: Sequence[int] | Array, keep: int | None = None) -> Future[Array]:
        """Submit tokens: a prompt, or the one chosen from the last logits.

        Returns immediately; a later step of the engine fulfils the future. The future's callbacks
        run in the thread of the steps. They may submit the next tokens, but must not run a step.
        A submission cancelled before its turn changes nothing.

        Args:
            ids: token ids, at least one.
            keep: stored tokens to keep, all if None; the ids follow them. This rewinds the
                conversation, exactly as if the dropped tokens had never been submitted.

        Returns:
            Future of the last token's logits, f32 [V]. It raises PromptTooLong or CapacityError if
            the conversation is too long, which affects no other, or DeviceError.

        Raises:
            RequestError: the last tokens are not read yet, or the conversation was closed.
            TensorError: an id is outside the vocabulary, or ``keep`` exceeds the stored
                tokens.
        """
        tokens = np.asarray(ids)
        if tokens.shape == (0,):
            raise TensorError("ids are empty; submit at least one token")
        if tokens.ndim != 1 or not len(tokens) or tokens.dtype.kind not in "iu":
            raise TensorError(f"ids are {tokens.dtype} {list(tokens.shape)}; pass integers [n]")
        kept = self._kept(keep)
        return self._engine.enqueue(self, tokens.astype(np.int64), kept)

    def copy_from(self, other: BatchedRequest, /) -> None:
        """Continue a copy of the stored tokens of another conversation, in place of the own ones.

        The copy has the other's settings, too, and depends on it no more. Its place may be one
        beyond those of the engine. This waits for a step in progress.

        Raises:
            RequestError: one of both was closed, this one has pending tokens, the other has no
                tokens yet or is reading some, both are the same, or a future's callback called
                this within a step.
            DeviceError: device memory is exhausted; no token is stored.
        """
        self._engine.copy(self, other)

    def _kept(self, keep: object) -> int:
        """Return the checked number of stored tokens to keep."""
        if keep is None:
            return self.stored
        try:
            kept = operator.index(cast(SupportsIndex, keep))
        except TypeError:
            raise TensorError(f"keep={keep!r} is not a number of tokens") from None
        if not 0 <= kept <= self.stored:
            raise TensorError(f"keep={kept}: only {self.stored} tokens are stored")
        return kept

    def rest(self) -> None:
        """Keep the tokens, and be shown as ended until the next ones are submitted.

        Other conversations do not wait for a conversation that rests; its place is not free.
        """
        self._engine.rest(self)

    def close(self) -> None:
        """Leave: pending tokens are cancelled; the longest-waiting conversation gets the place."""
        self._engine.leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
