"""Numbers of tokens of the variants, and the choice of variants to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_STEP = 8
"""Factor between the tokens of successive variants."""


_SAMPLED = 64
"""Limit of sampled tokens per run, for models that take sampled indices."""


@dataclass(frozen=True, slots=True)
class TokenRun:
    """One run: the range of tokens, ``end`` excluded, and the size of its variant."""

    begin: int
    end: int
    size: int


def variant_sizes(most: int) -> tuple[int, ...]:
    """Return the numbers of tokens to compile for, ascending: 1, 8, 64, … and the most.

    One token is a generate step of one sequence, a few are steps of several, and most are prompts.

    Args:
        most: NPUW_LLM_MAX_PROMPT_LEN.
    """
    sizes = [1]
    while sizes[-1] < most:
        sizes.append(min(sizes[-1] * _STEP, most))
    return tuple(sizes)


def sampled_rows(size: int) -> int:
    """Return the number of output rows of a variant that takes sampled indices.

    Args:
        size: tokens of the variant.
    """
    return min(size, _SAMPLED)


def plan_runs(tokens: int, sizes: Sequence[int]) -> Iterator[TokenRun]:
    """Cut tokens into runs: full runs of the largest variant, then the smallest that suffices.

    Args:
        tokens: number of tokens; may be 0.
        sizes: sizes of the variants, ascending.
    """
    begin = 0
    while begin < tokens:
        left = tokens - begin
        size = next((size for size in sizes if size >= left), sizes[-1])
        end = begin + min(size, left)
        yield TokenRun(begin, end, size)
        begin = end
