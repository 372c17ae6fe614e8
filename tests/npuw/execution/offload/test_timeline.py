"""Passes on the simulated device: the cost of copies in parallel to layers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.backends.protocols import Cost
from npuw_layer.execution.offload.plan import plan_offload
from npuw_layer.execution.offload.timeline import (
    PartCosts,
    asynchronous_pass,
    resident_pass,
    synchronous_pass,
)

NOTHING = Cost(0.0, 0.0)
LAYERS = 12  # divisible by rings of 2, 3 and 4 slots


def costs(layer: float, copy: float, ends: float = 0.0) -> PartCosts:
    return PartCosts(Cost(ends, 0.0), Cost(layer, 0.0), Cost(ends, 0.0), Cost(copy, 0.0))


def ring(reserved: int = 1, budget: int = 0):
    return plan_offload(LAYERS, 1, 0, budget, reserved)


@given(st.floats(1, 100), st.floats(1, 100), st.integers(1, 3))
def test_a_layer_waits_for_the_remainder_of_its_copy(layer, copy, reserved) -> None:
    """The stall of MindIE-SD's formula, for copies that share one engine."""
    found = asynchronous_pass(costs(layer, copy), ring(reserved), 1.0)
    assert found.stall_ns == pytest.approx(LAYERS * max(0.0, copy - layer), abs=1e-6)
    assert found.ns == pytest.approx(LAYERS * max(layer, copy))


def test_prologue_and_epilogue_also_overlap_with_copies() -> None:
    found = asynchronous_pass(costs(10.0, 12.0, ends=1.0), ring(), 1.0)
    assert found.stall_ns == pytest.approx(LAYERS * 2.0 - 2.0)


def test_a_synchronous_pass_takes_the_sum_of_layers_and_copies() -> None:
    both = costs(10.0, 7.0, ends=3.0)
    assert resident_pass(both, LAYERS).ns == 126
    assert synchronous_pass(both, ring()).ns == 126 + 12 * 7
    assert synchronous_pass(both, ring(budget=4)).ns == 126 + 10 * 7
    assert asynchronous_pass(both, ring(), 1.0).ns == 126


def test_layers_and_copies_share_the_bandwidth() -> None:
    """A layer that uses the full bandwidth leaves none to a copy: together they take their sum."""
    greedy = PartCosts(NOTHING, Cost(10.0, 10.0), NOTHING, Cost(5.0, 10.0))
    assert asynchronous_pass(greedy, ring(), 1.0).ns == pytest.approx(LAYERS * 20.0)
    assert asynchronous_pass(greedy, ring(), 100.0).ns == pytest.approx(LAYERS * 10.0)


@given(
    st.floats(1, 50), st.floats(1, 50), st.floats(0, 50), st.integers(1, 3), st.integers(0, LAYERS)
)
def test_copies_ahead_are_never_slower_than_waiting(layer, copy, ends, reserved, slots) -> None:
    if 0 < slots < reserved + 1:
        slots = reserved + 1
    plan, both = ring(reserved, slots), costs(layer, copy, ends)
    found = asynchronous_pass(both, plan, 1.0)
    assert found.ns <= synchronous_pass(both, plan).ns + 1e-6
    assert found.ns >= resident_pass(both, LAYERS).ns - 1e-6
    assert found.ns - found.stall_ns == pytest.approx(resident_pass(both, LAYERS).ns)
