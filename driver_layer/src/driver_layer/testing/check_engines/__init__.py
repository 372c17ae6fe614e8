"""Conformance checks for any set of engines: ``check_engines(lambda: MyEngines[Run]())``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from driver_layer.engines.contract import Engines, Run
from driver_layer.testing.check_engines import dma, dpu, shave
from driver_layer.testing.check_engines.bench import Bench as Bench
from driver_layer.testing.check_engines.bench import one as one

CHECKS: Sequence[Callable[[Bench], None]] = (
    dma.check_strided_copies_move_every_element,
    dma.check_copies_may_be_cut_differently_on_both_sides,
    dma.check_a_write_may_select_several_tiles,
    dma.check_a_gather_follows_its_list,
    dma.check_a_gather_outside_its_table_is_a_fault,
    dma.check_a_gather_beyond_its_table_is_a_fault_that_names_the_row,
    dma.check_transfers_out_of_memory_are_faults,
    dpu.check_matmuls_of_all_operand_types,
    dpu.check_accumulation_adds_to_the_output,
    dpu.check_integer_weights_are_scaled_per_group,
    dpu.check_weights_of_8_bit_floats_are_scaled_per_group,
    dpu.check_integer_activations_are_summed_exactly,
    dpu.check_the_zero_point_of_activations_is_subtracted,
    dpu.check_workloads_that_leave_their_tile_are_faults,
    shave.check_every_instruction,
    shave.check_loads_and_stores_of_every_type,
    shave.check_a_grid_reaches_every_row,
    shave.check_windows_that_leave_their_tile_are_faults,
)
"""All checks; test frameworks may run them individually."""


def check_engines(make: Callable[[], Engines[Run]]) -> None:
    """Run all checks, each on new engines.

    Raises:
        AssertionError: the engines violate their contract.
    """
    for check in CHECKS:
        check(Bench.make(make()))
