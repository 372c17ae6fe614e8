"""Rebasing of prepared programs to other memory."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from driver_layer.abi.platforms import tile_base
from driver_layer.abi.tasks import BARRIER_CONFIG, DMA_DESCRIPTOR, DmaCfg
from driver_layer.engines.contract import Run
from driver_layer.engines.executor import Rebasable, Spans
from driver_layer.engines.native import NativeExecutor
from driver_layer.engines.reference import ReferenceEngines, explain_fault
from driver_layer.engines.task_by_task import TaskByTask
from driver_layer.errors import DeviceFault
from driver_layer.npu.order import Order
from driver_layer.npu.program import DmaWork, Program
from driver_layer.testing.check_engines.one_task import free_queue
from driver_layer.testing.small_programs import CMX, Add, Copy, Machine, Side, Step

STEPS: list[Step] = [
    Copy(Side("fixed", 0, 64, ()), Side("cmx0", 0, 64, ())),
    Add(0, 0, 64, 4, 16, 16, 16),
    Copy(Side("cmx0", 64, 64, ()), Side("ddr", 0, 64, ())),
]


def explain(step: int) -> NoReturn:
    raise AssertionError(f"step {step} failed")


def prepared(machine: Machine, made: list[Step], spans: Spans | None = None) -> Run:
    spans = spans or machine.spans()
    return NativeExecutor().prepare(*machine.program(made), machine.bus, spans)


def rebased(run: Run, spans: Spans) -> Run | None:
    return run.rebased(spans, explain) if isinstance(run, Rebasable) else None


@pytest.mark.long
@settings(max_examples=70, deadline=None)
@given(data=st.data(), before=st.sampled_from([0, 4, 64, 4096]))
def test_any_rebased_program_leaves_the_same_bytes_as_a_newly_prepared_one(
    programs: st.SearchStrategy[list[Step]], data: st.DataObject, before: int
) -> None:
    made = data.draw(programs)
    there = Machine(before)
    run = rebased(prepared(Machine(), made), there.spans())
    event(f"rebased: {run is not None}")
    if run is not None:
        run()
        assert there.contents == Machine().run(made, TaskByTask(ReferenceEngines()))


def test_a_rebased_program_does_not_touch_the_first_memory() -> None:
    here, there = Machine(), Machine(64)
    before = here.contents
    run = rebased(prepared(here, STEPS), there.spans())
    assert run is not None
    run()
    assert there.contents == Machine().run(STEPS, TaskByTask(ReferenceEngines()))
    assert here.contents == before


def split(spans: Spans, gap: int) -> Spans:
    """Return DDR as two spans with a gap of some bytes between them."""
    number = 2
    begin, size = int(spans.begins[number]), int(spans.sizes[number]) // 2
    return Spans(
        np.append(spans.begins, begin + size + gap),
        np.append(np.where(np.arange(len(spans.sizes)) == number, size, spans.sizes), size),
        np.append(spans.rooms, size),
        np.append(spans.writable, True),
    )


def test_adjoining_spans_must_stay_adjoining() -> None:
    """A call may have been merged from two that adjoin."""
    here, there = Machine(), Machine(4096)
    run = prepared(here, STEPS, split(here.spans(), 0))
    assert rebased(run, split(there.spans(), 0)) is not None
    assert rebased(run, split(there.spans(), 64)) is None


def changed(spans: Spans, number: int, **columns: int) -> Spans:
    """Return the spans with changed columns of one span."""
    made = {}
    for name, value in columns.items():
        column = getattr(spans, name).copy()
        column[number] = value
        made[name] = column
    return replace(spans, **made)


DDR, FIXED = 2, 3


@pytest.mark.parametrize(
    ("number", "columns"),
    [
        (DDR, lambda spans: {"writable": False}),
        (DDR, lambda spans: {"begins": int(spans.begins[FIXED])}),
        (DDR, lambda spans: {"begins": int(spans.begins[FIXED]) + 256}),
    ],
    ids=["read-only", "the same as another", "within another"],
)
def test_programs_are_not_rebased_if_relations_of_their_memory_change(number, columns) -> None:
    run, spans = prepared(Machine(), STEPS), Machine(4096).spans()
    assert rebased(run, spans) is not None
    assert rebased(run, changed(spans, number, **columns(spans))) is None


def test_spans_that_are_only_read_may_become_one() -> None:
    """Two inputs, such as equal weights, may share memory."""
    made: list[Step] = [
        Copy(Side("fixed", 0, 64, ()), Side("cmx0", 0, 64, ())),
        Copy(Side("ddr", 0, 64, ()), Side("cmx0", 64, 64, ())),
    ]
    run, spans = prepared(Machine(), made), Machine().spans()
    assert rebased(run, changed(spans, DDR, begins=int(spans.begins[FIXED]))) is not None


def test_a_program_that_accesses_memory_beyond_its_spans_is_not_rebased() -> None:
    """The span is smaller than the accessed memory, so that the rest cannot be relocated."""
    machine = Machine()
    run = prepared(machine, STEPS, changed(machine.spans(), DDR, sizes=32))
    assert rebased(run, changed(Machine(64).spans(), DDR, sizes=32)) is None


def gathering(machine: Machine, row: int) -> tuple[Program, Order]:
    """Gather rows of the fixed memory, by a list in CMX, to DDR; the table has no row count."""
    machine.bus.cmx.tiles[0][CMX : CMX + 16].view("<i8")[:] = row, 1
    record = np.zeros(1, DMA_DESCRIPTOR)
    record["src"], record["dst"] = machine.fixed.address, machine.ddr.address
    record["src_width"], record["dst_width"] = 16, 32
    record["cfg"] = int(DmaCfg.SRC_LIST_RELATIVE)
    record["src_list"], record["src_dim1"], record["src_stride1"] = tile_base(0) + CMX, 1, 16
    program = Program((free_queue("q", DmaWork(record), 1),), np.zeros(0, BARRIER_CONFIG), ())
    return program, Order([0], [0])


def test_a_gather_is_rebased_if_the_other_allocation_has_room_for_its_table() -> None:
    here, there = Machine(), Machine()
    # The tensor is the first half of the memory; the table extends to its end.
    run = NativeExecutor().prepare(
        *gathering(here, 3), here.bus, changed(here.spans(), FIXED, sizes=256)
    )
    gathering(there, 3)
    spans = changed(there.spans(), FIXED, sizes=256)
    assert rebased(run, changed(spans, FIXED, rooms=256)) is None
    elsewhere = rebased(run, spans)
    assert elsewhere is not None
    elsewhere()
    rows = there.fixed.data.reshape(-1, 16)[[3, 1]].tobytes()
    assert there.contents[:32] == rows


def test_a_fault_of_a_rebased_program_is_explained_with_its_own_memory() -> None:
    here, there = Machine(), Machine()
    run = NativeExecutor().prepare(*gathering(here, 3), here.bus, here.spans())
    program, order = gathering(there, 99)

    def say(step: int) -> NoReturn:
        explain_fault(program, order, there.bus, step)

    assert isinstance(run, Rebasable)
    elsewhere = run.rebased(there.spans(), say)
    assert elsewhere is not None
    with pytest.raises(DeviceFault, match="q, task 0: a gather reads row 99 of a table"):
        elsewhere()
    run()
