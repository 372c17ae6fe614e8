"""Choice of one step's work: first come, first served. No tensors, no threads.

A step reads at most one chunk of one prompt, so generating conversations never wait longer than
one chunk. It also generates a token for each of the others, as many as there are slots. A
conversation that continues from a new token queues behind those that still wait for theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """Pending tokens of a conversation."""

    order: int
    """Order of submission: smaller is earlier."""
    reads_prompt: bool
    """True if prefill reads the tokens; False reads them one by one, like a single token."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Work of one step, as indices of conversations."""

    prompt: int | None
    """Conversation whose prompt is read on; None if there is no prompt to read."""
    generate: tuple[int, ...]
    """Conversations that generate: each runs one token."""


def plan_step(work: Sequence[Work], slots: int) -> StepPlan:
    """Choose the conversations of the next step.

    Args:
        work: pending tokens of each conversation that has a place.
        slots: conversations that can generate at once.
    """
    by_age = sorted(range(len(work)), key=lambda number: work[number].order)
    prompts = [number for number in by_age if work[number].reads_prompt]
    others = [number for number in by_age if not work[number].reads_prompt]
    return StepPlan(prompts[0] if prompts else None, tuple(others[:slots]))


def fitting(sizes: Sequence[int], needed: int) -> int | None:
    """Return the smallest of ascending sizes that holds what is needed; None if none does."""
    return next((size for size in sizes if size >= needed), None)
