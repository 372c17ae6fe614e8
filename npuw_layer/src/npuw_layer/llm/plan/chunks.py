"""Chunks of a prompt: the prefill model that reads each, and where its rows are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npuw_layer.llm.plan.stages import LLMPlan, Stage, choose_prefill, kv_layout
from npuw_layer.options import Options


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens of a prompt that one run reads."""

    stage: Stage
    tokens: int
    in_place: bool
    """True if the run writes rows where generate reads them; False if they are copied there."""


def chunks(planned: LLMPlan, options: Options, tokens: int, stored: int) -> Iterator[Chunk]:
    """Yield the chunks of a prompt; fewer tokens if no prefill model can continue.

    Writing in place needs a program for each first row, so only rows behind complete chunks have
    one; they must exist and be contiguous for the whole model.

    Args:
        planned: the static models.
        options: options of the plan.
        tokens: tokens to read.
        stored: tokens in the cache before them.
    """
    layout, lengths, end = kv_layout(options), planned.lengths, stored + tokens
    while stored < end:
        stage = choose_prefill(planned.prefill, end - stored, stored)
        if stage is None:
            return
        used = min(end - stored, stage.tokens)
        fits = layout.together(stored, stage.tokens, lengths.total)
        aligned = stored % lengths.prefill_input == 0
        yield Chunk(stage, used, options.writes_in_place and aligned and fits)
        stored += used
