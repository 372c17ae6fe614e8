"""What the engine knows of a conversation: what it wants to say, and where its caches are."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.batching.request import BatchedRequest
from npuw_layer.llm.plan.stages import Plan
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.reader import Reading
from npuw_layer.options import Options
from npuw_layer.tensors.names import IDS, POSITIONS


@dataclass(slots=True)
class Submission:
    """Tokens that a conversation goes on with, and the promise of the last one's logits."""

    ids: Array
    """i64 [n]."""
    keep: int
    """Stored tokens that stay."""
    order: int
    """When it was submitted: smaller is earlier."""
    logits: Future[Array] = field(default_factory=Future[Array])
    read: int = 0
    """How many of the tokens have been read."""
    reading: Reading | None = None
    """What reads them, once it has begun; a token alone needs none."""

    @property
    def left(self) -> int:
        """Tokens that are still to be read."""
        return len(self.ids) - self.read

    @property
    def position(self) -> int:
        """Where the next token goes."""
        return self.keep + self.read

    def tokens(self, count: int) -> NewTokens:
        """The next tokens, as a conversation takes them."""
        begin, position = self.read, self.position
        rows = {
            IDS: self.ids[begin : begin + count],
            POSITIONS: np.arange(position, position + count),
        }
        return NewTokens(rows, np.ones(position + count, np.int64))


@dataclass(slots=True, eq=False)
class Participant:
    """A conversation of several, with a place (caches and models of its own), or waiting."""

    request: BatchedRequest
    place: Conversation | None = None
    submission: Submission | None = None
    """The last one; nothing is left of it when its promise was kept, broken or taken back."""
    over: bool = False

    @property
    def speaks(self) -> bool:
        """True while submitted tokens are still to be read."""
        return self.submission is not None and not self.submission.logits.done()


def reads_prompt(submission: Submission, plan: Plan, options: Options) -> bool:
    """Whether a conversation can read what is next by itself, in a piece or several.

    Several tokens behind stored ones may be too many for it (``TooManyTokens``): they are read as
    generated ones are.
    """
    if submission.reading is not None or not submission.position:
        return True
    few = submission.left <= plan.generate[0].tokens
    return submission.left > 1 and (options.enable_continuous_prefill or few)
