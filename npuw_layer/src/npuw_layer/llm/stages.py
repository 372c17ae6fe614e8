"""The static models that one LLM is made of: which there are, and how long they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npuw_layer.llm.lengths import Lengths, plan_lengths
from npuw_layer.llm.variants import given_ladder, ladder
from npuw_layer.options import Options


@dataclass(frozen=True, slots=True)
class Stage:
    """One static model to make: new tokens it takes, and stored ones it reads."""

    name: str
    tokens: int
    past: int
    slots: int = 1
    """Conversations that it takes tokens of."""


def plan(options: Options) -> tuple[Lengths, list[int]]:
    """Give the lengths and the capacities of the generate models.

    Raises:
        OptionError: they contradict one another.
    """
    lengths = plan_lengths(
        options.max_prompt_len,
        options.min_response_len,
        options.prefill_chunk_size,
        options.prefill_hint == "DYNAMIC",
    )
    if not options.generate_pyramid:
        return lengths, [lengths.total]
    if options.pyramid_steps:
        return lengths, given_ladder(options.pyramid_steps, lengths.total)
    return lengths, ladder(lengths.total)


def plan_stages(
    lengths: Lengths, capacities: list[int], slots: Sequence[int] = (1,)
) -> Iterator[Stage]:
    """Give all models to make: prefill first, then the generate variants, ascending.

    Behind them those that generate for several conversations at once (NPUW_LLM_BATCH_SLOTS).
    """
    yield Stage(f"prefill_{lengths.max_prompt}", lengths.prefill_input, lengths.prefill_past)
    for capacity in capacities:
        yield Stage(f"generate_{capacity}", 1, capacity - 1)
    for count in slots:
        for capacity in capacities:
            if count > 1:
                yield Stage(f"generate_{capacity}_slots_{count}", 1, capacity - 1, count)
