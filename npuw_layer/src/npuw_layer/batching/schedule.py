"""Choice of one step's work: first come, first served. No tensors, no threads.

A step reads at most one chunk of one prompt, so generating conversations wait for at most one
chunk. It also generates one token for each of the others, up to the number of slots. A
conversation that submits its next token queues behind those whose tokens are still pending.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Work of one step, as indices of conversations."""

    prompt: int | None
    """Conversation whose next prompt chunk is read; None without a prompt to read."""
    generate: tuple[int, ...]
    """Conversations that generate: each runs one token."""


def plan_step(reads_prompt: Sequence[bool], slots: int) -> StepPlan:
    """Choose the conversations of the next step.

    Args:
        reads_prompt: for each conversation that has a place and pending tokens, the oldest first:
            whether prefill reads the tokens; otherwise they are read one by one.
        slots: conversations that can generate in one step.
    """
    prompts = [number for number, reads in enumerate(reads_prompt) if reads]
    others = [number for number, reads in enumerate(reads_prompt) if not reads]
    return StepPlan(prompts[0] if prompts else None, tuple(others[:slots]))


def fitting(sizes: Sequence[int], needed: int) -> int | None:
    """Return the first of ascending sizes that is at least ``needed``; None if all are smaller."""
    return next((size for size in sizes if size >= needed), None)
