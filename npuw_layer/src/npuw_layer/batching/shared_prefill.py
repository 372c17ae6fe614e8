"""Choice of the prompts that one prefill run reads, each in a slot of its own. No tensors.

A short prompt fills a small part of the prefill model that reads it alone. If several wait, a model
with a slot for each reads them in one run, provided that it costs no more than the runs that it
replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npuw_layer.batching.participant import Submission
from npuw_layer.llm.plan.chunks import chunks, cost
from npuw_layer.llm.plan.stages import LLMPlan, Stage
from npuw_layer.options import Options


@dataclass(frozen=True, slots=True)
class Shared:
    """Prompts to read in one run, as indices, and the model that reads them."""

    prompts: Sequence[int]
    stage: Stage


def share_prefill(
    waiting: Sequence[Submission], planned: LLMPlan, options: Options
) -> Shared | None:
    """Choose prompts to read together with the oldest one.

    Args:
        waiting: prompts that can be read, the oldest first.
        planned: the static models.
        options: options of the plan.

    Returns:
        As many prompts as possible, in the smallest model for them; None if the oldest prompt is
        better read alone.
    """
    short = [number for number, each in enumerate(waiting) if _is_short(each, planned, options)]
    if short[:1] != [0]:
        return None
    alone = [
        sum(cost(chunk.stage) for chunk in chunks(planned, options, waiting[number].left, 0))
        for number in short
    ]
    found = [
        Shared(short[: stage.slots], stage)
        for stage in planned.shared
        if len(short) > 1 and cost(stage) <= sum(alone[: stage.slots])
    ]
    return max(found, key=lambda each: len(each.prompts), default=None)


def _is_short(submission: Submission, planned: LLMPlan, options: Options) -> bool:
    """Return whether a slot takes a whole prompt of a new conversation.

    A prompt with a complete block for the prefix cache is read alone, which consults that cache.
    """
    most = max((stage.tokens for stage in planned.shared), default=0)
    if options.enable_prefix_caching:
        most = min(most, options.prefix_caching_block_size - 1)
    begins = submission.reading is None and not submission.position
    return begins and 1 < submission.left <= most
