"""Choice of one step's work: first come, first served. No tensors, no threads.

A step runs at most one prefill model: it reads a chunk of one prompt, or some short prompts
together. So generating conversations wait for at most one prefill run. The step also generates one
token for each of the others, up to the number of slots. A conversation that submits its next token
queues behind those whose tokens are still pending.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Work of one step, as indices of conversations."""

    prompts: tuple[int, ...]
    """Conversations with a prompt to read, the oldest first; one prefill run reads of the first
    one, and of others that can share the run."""
    generate: tuple[int, ...]
    """Conversations that generate: each runs one token."""


def plan_step(reads_prompt: Sequence[bool], slots: int) -> StepPlan:
    """Choose the conversations of the next step.

    Args:
        reads_prompt: for each conversation that has a place and pending tokens, the oldest first:
            whether prefill reads the tokens; otherwise they are read one by one.
        slots: conversations that can generate in one step.
    """
    prompts = tuple(number for number, reads in enumerate(reads_prompt) if reads)
    others = tuple(number for number, reads in enumerate(reads_prompt) if not reads)
    return StepPlan(prompts, others[:slots])


def fitting(sizes: Sequence[int], needed: int) -> int | None:
    """Return the first of ascending sizes that is at least ``needed``; None if all are smaller."""
    return next((size for size in sizes if size >= needed), None)
