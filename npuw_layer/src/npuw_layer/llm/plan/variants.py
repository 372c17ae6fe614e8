"""Generate variants of several capacities, so that short conversations read short caches."""

from __future__ import annotations

from collections.abc import Sequence

from npuw_layer.errors import OptionError

SMALLEST = 256
"""Smallest capacity of the ladder."""


def ladder(total: int) -> list[int]:
    """Return capacities that double from the smallest up to the total: 256, 512, 1024, 1152."""
    steps: list[int] = []
    step = SMALLEST
    while step < total:
        steps.append(step)
        step *= 2
    return [*steps, total]


def given_ladder(steps: Sequence[int], total: int) -> list[int]:
    """Return the capacities that the user chose, completed by the total.

    Raises:
        OptionError: the capacities do not ascend, or exceed the total.
    """
    full = [*steps] if total in steps else [*steps, total]
    if sorted(set(full)) != full or full[0] < 2 or full[-1] != total:
        raise OptionError(
            f"NPUW_LLM_GENERATE_PYRAMID_STEPS is {list(steps)}; "
            f"capacities must ascend and not exceed {total}"
        )
    return full


def select_generate_request(capacities: Sequence[int], tokens: int, reserve: int) -> int:
    """Return the index of the variant to generate with (docs/reference/npuw.md#generate-variants).

    Args:
        capacities: capacities of the variants, ascending.
        tokens: number of stored tokens.
        reserve: tokens that should still fit: NPUW_LLM_MIN_RESPONSE_LEN.

    Returns:
        The smallest variant that holds both; the largest if none does.
    """
    for index, capacity in enumerate(capacities):
        if capacity >= tokens + reserve:
            return index
    return len(capacities) - 1


def selection_reason(capacities: Sequence[int], tokens: int, reserve: int) -> str:
    """Return the reason why ``select_generate_request`` selects its variant, for users."""
    capacity = capacities[select_generate_request(capacities, tokens, reserve)]
    needed = f"{tokens + reserve} = {tokens} stored + {reserve} reserved"
    if capacity < tokens + reserve:
        return f"{needed}; no variant holds them, so the largest is used: {capacity}"
    return f"{needed}; the smallest variant that holds them is {capacity}"
