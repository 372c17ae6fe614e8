"""What the engine knows of a conversation: what it wants to say, and where its caches are."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from npuw_layer.batching.request import BatchedRequest
from npuw_layer.llm.infer_request import InferRequest
from npuw_layer.llm.lengths import Lengths
from npuw_layer.llm.names import IDS, LOGITS, MASK, POSITIONS
from npuw_layer.ports import Array


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

    @property
    def left(self) -> int:
        """Tokens that are still to be read."""
        return len(self.ids) - self.read

    @property
    def position(self) -> int:
        """Where the next token goes."""
        return self.keep + self.read


@dataclass(slots=True, eq=False)
class Conversation:
    """A conversation, with a place (an infer request with its caches) or waiting for one."""

    request: BatchedRequest
    place: InferRequest | None = None
    submission: Submission | None = None
    over: bool = False


def reads_prompt(submission: Submission, lengths: Lengths) -> bool:
    """Whether prefill takes what is next: several tokens, not too far behind the beginning."""
    if submission.left == 1 and submission.position:
        return False
    return submission.position == 0 or submission.position <= lengths.prefill_past


def piece(submission: Submission, lengths: Lengths) -> int:
    """How many tokens a step reads of a prompt: a chunk, or all if it is refused anyway."""
    too_long = submission.position == 0 and submission.left > lengths.max_prompt
    return submission.left if too_long else min(submission.left, lengths.prefill_input)


def infer(place: InferRequest, submission: Submission, count: int) -> Array:
    """Let a place read the next tokens by itself; give the last one's logits, f32 [V]."""
    begin, position = submission.read, submission.position
    inputs = {
        IDS: submission.ids[None, begin : begin + count],
        MASK: np.ones((1, position + count), np.int64),
        POSITIONS: np.arange(position, position + count)[None],
    }
    return place.infer(inputs)[LOGITS][0, -1]
