"""For how many tokens a model is compiled, and which of these variants run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_STEP = 8
"""Each variant takes so many times the tokens of the one before."""


_SAMPLED = 64
"""The most tokens of one run that outputs are wanted for, where a model is told which."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: the tokens that it reads, ``end`` not included, and for how many it is compiled."""

    begin: int
    end: int
    size: int


def variant_sizes(most: int) -> tuple[int, ...]:
    """Give the numbers of tokens to compile for, ascending: 1, 8, 64, … and the most.

    One token is a step of one sequence, and some are steps of several; most are prompts.

    Args:
        most: NPUW_LLM_MAX_PROMPT_LEN.
    """
    sizes = [1]
    while sizes[-1] < most:
        sizes.append(min(sizes[-1] * _STEP, most))
    return tuple(sizes)


def sampled_rows(size: int) -> int:
    """Give for how many tokens of a run outputs are computed, if not for all.

    Args:
        size: tokens of the run.
    """
    return min(size, _SAMPLED)


def plan_runs(tokens: int, sizes: Sequence[int]) -> Iterator[Run]:
    """Cut tokens into runs: the largest as often as it is full, then the smallest that suffices.

    Args:
        tokens: how many there are; maybe none.
        sizes: of the variants, ascending.
    """
    begin = 0
    while begin < tokens:
        left = tokens - begin
        size = next((size for size in sizes if size >= left), sizes[-1])
        end = begin + min(size, left)
        yield Run(begin, end, size)
        begin = end
