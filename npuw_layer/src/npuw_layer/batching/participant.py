"""Engine's record of a conversation: its pending tokens and its caches."""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.batching.request import BatchedRequest
from npuw_layer.errors import NpuwError
from npuw_layer.llm.plan.stages import LLMPlan
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.reader import Reading
from npuw_layer.tensors.names import IDS, POSITIONS


@dataclass(slots=True)
class Submission:
    """Next tokens of a conversation, and the future of the last one's logits."""

    ids: Array
    """Token ids, i64 [n]."""
    keep: int
    """Stored tokens to keep."""
    order: int
    """Order of submission: smaller is earlier."""
    logits: Future[Array] = field(default_factory=Future[Array])
    read: int = 0
    """Number of the tokens already read."""
    reading: Reading | None = None
    """Prompt reader, once it has begun; a single token needs none."""

    @property
    def left(self) -> int:
        """Tokens still to read."""
        return len(self.ids) - self.read

    @property
    def position(self) -> int:
        """Position of the next token."""
        return self.keep + self.read

    def tokens(self, count: int) -> NewTokens:
        """Return the next tokens, in the form that a conversation takes."""
        begin, position = self.read, self.position
        rows = {
            IDS: self.ids[begin : begin + count],
            POSITIONS: np.arange(position, position + count),
        }
        return NewTokens(rows, np.ones(position + count, np.int64))

    def begin(self) -> bool:
        """Return whether the submission is not cancelled; afterwards it cannot be cancelled."""
        return self.logits.running() or self.logits.set_running_or_notify_cancel()

    def settle(self, result: Array | NpuwError) -> None:
        """Set the result or exception of the future, unless it was cancelled."""
        try:
            if isinstance(result, NpuwError):
                self.logits.set_exception(result)
            else:
                self.logits.set_result(result)
        except InvalidStateError:
            pass


@dataclass(frozen=True, slots=True)
class Together:
    """Model that generated for several conversations in one run."""

    conversations: int
    capacity: int
    """Positions that the model's attention spans."""


@dataclass(slots=True, eq=False)
class Participant:
    """One conversation of several: waiting, or with a place (its own caches and models)."""

    request: BatchedRequest
    place: Conversation | None = None
    submission: Submission | None = None
    """Latest submission; None once its future is settled."""
    over: bool = False
    rests: bool = False
    """True if no tokens follow for now; the caches stay."""
    prompt_tokens: int = 0
    """Tokens up to the end of the last prompt."""
    together: Together | None = None
    """Model of the last generated token; None if the conversation ran alone."""

    @property
    def speaks(self) -> bool:
        """True while submitted tokens are still to be read."""
        return self.submission is not None and not self.submission.logits.done()


def reads_prompt(submission: Submission, plan: LLMPlan) -> bool:
    """Return whether a conversation can read its pending tokens by itself, in one chunk or several.

    Several tokens behind stored ones may be too many for it (``TooManyTokens``): then they are read
    one by one, as generated tokens are.
    """
    if submission.reading is not None or not submission.position:
        return True
    few = submission.left <= plan.generate[0].tokens
    return submission.left > 1 and (plan.resumes or few)
