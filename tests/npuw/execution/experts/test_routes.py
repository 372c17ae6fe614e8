"""Routes of tokens to experts: inversion of a router's choice, and the rows of an expert's run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.execution.experts.compile import rows_at_once
from npuw_layer.execution.experts.program import routes

EXPERTS = 6


@st.composite
def choices(draw: st.DrawFn) -> np.ndarray:
    """Draw ids [T, K]; no token has an expert twice."""
    tokens, slots = draw(st.integers(1, 9)), draw(st.integers(1, EXPERTS))
    some = st.permutations(range(EXPERTS)).map(lambda one: one[:slots])
    return np.array(draw(st.lists(some, min_size=tokens, max_size=tokens)), np.int64)


@given(choices(), st.integers(1, 4))
def test_each_choice_is_in_one_part_of_its_experts_route(ids, count):
    found = routes(ids)
    assert list(found) == sorted(set(ids.reshape(-1).tolist()))
    seen: set[tuple[int, int]] = set()
    for expert, route in found.items():
        parts = list(route.parts(count))
        assert max(len(part.tokens) for part in parts) <= count
        assert len(parts) == -(-len(route.tokens) // count)
        tokens = np.concatenate([part.tokens for part in parts])
        slots = np.concatenate([part.slots for part in parts])
        assert (np.diff(tokens) > 0).all()
        assert (ids[tokens, slots] == expert).all()
        seen |= set(zip(tokens.tolist(), slots.tolist(), strict=True))
    assert len(seen) == ids.size


@pytest.mark.parametrize(
    ("tokens", "slots", "experts", "asked", "count"),
    [
        (1, 8, 128, 0, 1),  # generate
        (8, 2, 8, 0, 8),  # few tokens run in one chunk
        (64, 2, 8, 0, 16),
        (1024, 8, 128, 0, 64),
        (1024, 2, 8, 0, 256),
        (1000, 2, 8, 0, 256),  # 250 on average
        (64, 2, 8, 5, 5),
        (3, 2, 8, 5, 3),
    ],
)
def test_an_expert_runs_on_its_average_number_of_rows(tokens, slots, experts, asked, count):
    assert rows_at_once(tokens, slots, experts, asked) == count
