"""Chunks of a prompt: the prefill models that read it at least cost, and where rows are written.

The cost of a run is an estimate from its lengths alone, so that a prompt's chunks are the same
before and after compilation and on all devices: a run costs as much as START rows, a row as much as
its attention to REACH positions. For Llama of 135 million parameters, both lie between the values
of the simulated device (39 and 1,300) and those of the host that simulates it (9 and 2,400).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npuw_layer.llm.plan.stages import LLMPlan, Stage, kv_layout
from npuw_layer.options import Options

START = 24
"""Rows whose computation takes as long as the rest of a run, e.g. reading weights."""

REACH = 2000
"""Positions that a row attends to in the time of its other computations."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens of a prompt that one run reads."""

    stage: Stage
    tokens: int
    in_place: bool
    """True if the run writes rows where generate reads them; False if they are copied there."""

    @property
    def padding(self) -> int:
        """Number of rows that the run computes without tokens."""
        return self.stage.tokens - self.tokens


def cost(stage: Stage) -> int:
    """Return the relative time of a run; padding and unused slots cost as much as tokens."""
    attended = stage.past + stage.tokens // 2  # on average: a row attends to none after its own
    return START * REACH + stage.slots * stage.tokens * (REACH + attended)


def cheapest(stages: Sequence[Stage], tokens: int, stored: int) -> tuple[Stage, ...]:
    """Return the prefill models that read tokens at least cost, in order; all but the last full.

    Args:
        stages: the prefill models.
        tokens: number of tokens to read.
        stored: tokens in the cache before them.

    Returns:
        On a tie, the sequence with larger models first. Empty if no sequence reads all tokens: a
        model's past must hold all tokens before its own.
    """
    least: dict[int, tuple[int, tuple[Stage, ...]]] = {0: (0, ())}
    """Least cost of reading some first tokens, and the models, by number of tokens."""
    for done in range(tokens):
        if done not in least:
            continue
        before, path = least[done]
        for stage in (each for each in stages if each.past >= stored + done):
            end, total = min(done + stage.tokens, tokens), before + cost(stage)
            if end not in least or total <= least[end][0]:
                least[end] = total, (*path, stage)
    return least[tokens][1] if tokens in least else ()


def chunks(planned: LLMPlan, options: Options, tokens: int, stored: int) -> list[Chunk]:
    """Return the chunks of a prompt; none if the prefill models cannot read all of it.

    Writing in place needs a program for each first row, so only rows behind complete chunks have
    one; they must exist and be contiguous for the whole model.

    Args:
        planned: the static models.
        options: options of the plan.
        tokens: tokens to read.
        stored: tokens in the cache before them.
    """
    layout, lengths, end = kv_layout(options), planned.lengths, stored + tokens
    found: list[Chunk] = []
    for stage in cheapest(planned.prefill, tokens, stored):
        fits = layout.together(stored, stage.tokens, lengths.total)
        aligned = stored % lengths.prefill_input == 0
        used = min(end - stored, stage.tokens)
        found.append(Chunk(stage, used, options.writes_in_place and aligned and fits))
        stored += used
    return found
