"""Assignment of slots from a budget: integer arithmetic only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.errors import OptionError
from npuw_layer.execution.offload.plan import plan_offload


def test_without_a_budget_the_ring_has_a_slot_for_each_reserved_layer_and_the_computing_one():
    plan = plan_offload(layers=6, layer_bytes=10, resident_bytes=5, budget=0, reserved=1)
    assert plan.slot_of == (0, 1, 0, 1, 0, 1)
    assert plan.next_in_slot == (2, 3, 4, 5, 0, 1)
    assert plan_offload(6, 10, 5, 0, reserved=2).slot_of == (0, 1, 2, 0, 1, 2)


def test_layers_that_keep_their_slot_are_spread_evenly():
    plan = plan_offload(layers=6, layer_bytes=10, resident_bytes=5, budget=45, reserved=1)
    assert plan.slots == 4
    assert plan.moving == (0, 2, 3, 5)
    assert [plan.slot_of[layer] for layer in plan.moving] == [0, 1, 0, 1]


def test_with_a_budget_for_all_layers_none_is_copied_again():
    plan = plan_offload(layers=6, layer_bytes=10, resident_bytes=5, budget=1000, reserved=1)
    assert plan.moving == ()
    assert sorted(plan.slot_of) == [0, 1, 2, 3, 4, 5]


def test_the_error_of_a_small_budget_has_the_needed_bytes():
    with pytest.raises(OptionError, match=r"NPUW_WEIGHTS_BUDGET = 24 .* 25 bytes are needed"):
        plan_offload(layers=6, layer_bytes=10, resident_bytes=5, budget=24, reserved=1)
    assert plan_offload(6, 10, 5, budget=25, reserved=1).slots == 2


@given(
    st.integers(1, 40), st.integers(1, 9), st.integers(0, 9), st.integers(0, 500), st.integers(1, 8)
)
def test_every_plan_fits_its_budget(layers, layer_bytes, resident, budget, reserved):
    try:
        plan = plan_offload(layers, layer_bytes, resident, budget, reserved)
    except OptionError:
        assert 0 < budget < resident + min(reserved + 1, layers) * layer_bytes
        return
    if budget:
        assert resident + plan.slots * layer_bytes <= budget
    assert sorted(plan.next_in_slot) == list(range(layers))
    for layer, following in enumerate(plan.next_in_slot):
        assert plan.slot_of[following] == plan.slot_of[layer]
    # While a layer computes, the next reserved layers have other slots.
    for at in range(layers - reserved):
        assert len(set(plan.slot_of[at : at + reserved + 1])) == reserved + 1
