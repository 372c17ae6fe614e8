"""What a step does for whom: first come, first served. No tensors, no threads.

A step reads one piece of one prompt at most, so that those who generate never wait for more than
that; and it generates a token for each of the others, as many as there are slots. Whoever goes on
from a token that was just made queues behind those that still wait for theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """Tokens that a conversation has to be read."""

    order: int
    """When it was submitted: smaller is earlier."""
    reads_prompt: bool
    """Whether prefill can take them; otherwise they are read one by one, as is a single token."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What a step does, in numbers of conversations."""

    prompt: int | None
    """Whose prompt is read on."""
    generate: tuple[int, ...]
    """Who takes a token each."""


def plan_step(work: Sequence[Work], slots: int) -> StepPlan:
    """Choose whose turn it is.

    Args:
        work: of each conversation that has a place and something to say.
        slots: conversations that can generate at once.
    """
    by_age = sorted(range(len(work)), key=lambda number: work[number].order)
    prompts = [number for number in by_age if work[number].reads_prompt]
    others = [number for number in by_age if not work[number].reads_prompt]
    return StepPlan(prompts[0] if prompts else None, tuple(others[:slots]))


def fitting(sizes: Sequence[int], needed: int) -> int | None:
    """The smallest of some sizes, ascending, that holds what is needed; None if none does."""
    return next((size for size in sizes if size >= needed), None)
