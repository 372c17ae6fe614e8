"""The native executor leaves the same bytes as running the tasks one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.abi.platforms import CMX_BASE, tile_base
from driver_layer.abi.shave import KERNEL_ARGS
from driver_layer.abi.shave_text import assemble
from driver_layer.abi.tasks import (
    BARRIER_CONFIG,
    DMA_DESCRIPTOR,
    DmaCfg,
)
from driver_layer.engines.native import NativeExecutor
from driver_layer.engines.native.jit.cache import ObjectCache
from driver_layer.engines.native.jit.host import detect
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.lower import shave
from driver_layer.engines.reference import ReferenceEngines
from driver_layer.engines.task_by_task import TaskByTask
from driver_layer.errors import DeviceFault
from driver_layer.npu.order import Order
from driver_layer.npu.program import DmaWork, Program, ShaveWork
from driver_layer.testing.check_engines import CHECKS, Bench
from driver_layer.testing.check_engines.one_task import OneTask, free_queue
from driver_layer.testing.small_programs import (
    CMX,
    Add,
    Copy,
    Machine,
    Matmul,
    Side,
    Step,
)


@pytest.mark.matrix
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_engine_contract(check: Callable[[Bench], None]) -> None:
    check(Bench.make(OneTask(NativeExecutor())))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_engine_contract_of_the_task_by_task_executor(check: Callable[[Bench], None]) -> None:
    check(Bench.make(OneTask(TaskByTask(ReferenceEngines()))))


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_program_leaves_the_same_bytes_as_the_reference(
    programs: st.SearchStrategy[list[Step]], data: st.DataObject
) -> None:
    """Eliminated copies and concurrent tasks have no observable effect."""
    made = data.draw(programs)
    expected = Machine().run(made, TaskByTask(ReferenceEngines()))
    assert Machine().run(made, NativeExecutor()) == expected


def test_bytes_between_rows_do_not_belong_to_the_rows() -> None:
    """A copy writes between two rows of a matmul's output; a later copy reads parts of both."""
    made: list[Step] = [
        Copy(Side("ddr", 0, 16, ()), Side("cmx1", 32, 16, ())),
        Matmul(1, act=0, weight=0, out=16, m=2, n=4, k=8, pitch=32),
        Copy(Side("cmx1", 4, 32, ()), Side("ddr", 0, 32, ())),
    ]
    expected = Machine().run(made, TaskByTask(ReferenceEngines()))
    assert Machine().run(made, NativeExecutor()) == expected


LOAD = Copy(Side("fixed", 0, 64, ()), Side("cmx0", 0, 64, ()))
STORE = Copy(Side("cmx0", 64, 64, ()), Side("ddr", 0, 64, ()))


def eliminated(made: list[Step], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return which steps the native executor eliminates."""
    from driver_layer.engines.native import executor

    seen: list[bool] = []
    real = executor.propagate_copies

    def propagate_copies(*arguments: Any) -> Any:
        found = real(*arguments)
        seen.extend(found.eliminated.tolist())
        return found

    monkeypatch.setattr(executor, "propagate_copies", propagate_copies)
    Machine().run(made, NativeExecutor())
    return seen


def test_copies_into_and_out_of_cmx_are_eliminated(monkeypatch: pytest.MonkeyPatch) -> None:
    add = Add(0, 0, 64, 4, 16, 16, 16)
    assert eliminated([LOAD, add, STORE], monkeypatch) == [True, False, True]


def test_a_copy_whose_source_changes_before_it_is_read_is_executed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load = Copy(Side("ddr", 0, 64, ()), Side("cmx0", 0, 64, ()))
    change = Copy(Side("fixed", 0, 16, ()), Side("ddr", 32, 16, ()))
    add = Add(0, 0, 64, 4, 16, 16, 16)
    made = [load, change, add, STORE]
    assert eliminated(made, monkeypatch) == [False, False, False, True]


def test_a_result_with_two_uses_stays_in_cmx(monkeypatch: pytest.MonkeyPatch) -> None:
    add = Add(0, 0, 64, 4, 16, 16, 16)
    again = Copy(Side("cmx0", 64, 64, ()), Side("ddr", 256, 64, ()))
    assert eliminated([LOAD, add, STORE, again], monkeypatch) == [True, False, False, False]


def test_a_fault_names_the_task_and_the_address() -> None:
    stray = Copy(Side("fixed", 0, 64, ()), Side("fixed", 64, 64, ()))
    with pytest.raises(DeviceFault, match="q1, task 0: write to read-only memory"):
        Machine().run([LOAD, stray], NativeExecutor())


def test_a_matmul_writes_directly_to_the_spread_rows_of_its_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    product = Matmul(0, act=0, weight=32, out=64, m=4, n=2, k=16, pitch=8)
    spread = Copy(Side("cmx0", 64, 32, ()), Side("ddr", 0, 8, ((4, 40),)))
    assert eliminated([LOAD, product, spread], monkeypatch) == [True, False, True]


def test_the_reference_engine_runs_kernels_beyond_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each may take a second to compile: a hostile program must not take hours to load."""
    monkeypatch.setattr(shave, "MOST_KERNELS", 0)
    made: list[Step] = [LOAD, Add(0, 0, 64, 4, 16, 16, 16), STORE]
    kernels = Kernels(detect(), ObjectCache(None))
    expected = Machine().run(made, TaskByTask(ReferenceEngines()))
    assert Machine().run(made, NativeExecutor(kernels)) == expected
    assert not [key for key in kernels.keys().values() if key.startswith("shave")]


def test_a_program_without_tasks_does_nothing() -> None:
    before = Machine().ddr.data.tobytes()
    assert Machine().run([], NativeExecutor()) == before


def test_a_task_without_operands_does_nothing() -> None:
    machine = Machine()
    head = np.zeros(1, KERNEL_ARGS)
    head["grid"] = 1
    queue = free_queue("q", ShaveWork(0, [assemble("end")], [0], [head.tobytes()]), 1)
    program = Program((queue,), np.zeros(0, BARRIER_CONFIG), ())
    NativeExecutor().prepare(program, Order([0], [0]), machine.bus)()


def test_a_copy_to_no_tile_faults_next_to_one_to_two_tiles() -> None:
    """Both copies differ only in their addresses."""
    machine = Machine()
    records = np.zeros(2, DMA_DESCRIPTOR)
    records["src"] = machine.ddr.address
    records["src_width"] = records["dst_width"] = 16
    records["dst"] = tile_base(0) | tile_base(1), tile_base(0) & ~(tile_base(0) - CMX_BASE)
    program = Program((free_queue("q", DmaWork(records), 2),), np.zeros(0, BARRIER_CONFIG), ())
    with pytest.raises(DeviceFault, match="q, task 1: no such tiles"):
        NativeExecutor().prepare(program, Order([0, 0], [0, 1]), machine.bus)


def test_a_gather_to_two_tiles_writes_both() -> None:
    machine = Machine()
    machine.ddr.data[:16].view("<i8")[:] = 3, 1
    tiles = [tile_base(tile) + CMX for tile in (0, 1)]
    records = np.zeros(4, DMA_DESCRIPTOR)
    # The list is copied to tile 0, the rows are gathered to both tiles, and copied out of both.
    records["src"] = machine.ddr.address, machine.fixed.address, *(tile + 64 for tile in tiles)
    records["dst"] = (
        tiles[0],
        64 + (tiles[0] | tiles[1]),
        *(machine.ddr.address + offset for offset in (256, 384)),
    )
    records["src_width"] = records["dst_width"] = 16
    records[1]["cfg"] = int(DmaCfg.SRC_LIST_RELATIVE)
    records[1]["src_list"], records[1]["src_dim1"], records[1]["src_stride1"] = tiles[0], 1, 16
    records["dst_width"][1:] = records["src_width"][2:] = 32
    work = DmaWork(records)
    program = Program((free_queue("q", work, 4),), np.zeros(0, BARRIER_CONFIG), ())
    order = Order([0] * 4, list(range(4)))
    NativeExecutor().prepare(program, order, machine.bus)()
    rows = machine.fixed.data.reshape(-1, 16)[[3, 1]].reshape(-1)
    for offset in (256, 384):
        assert np.array_equal(machine.ddr.data[offset : offset + 32], rows)


def test_a_failing_gather_names_the_row_if_the_copy_of_its_list_was_eliminated() -> None:
    """CMX, where the reference engine reads, never had the list."""
    machine = Machine()
    machine.bus.cmx.tiles[0][:].view("<i8")[:] = 1 << 40
    machine.ddr.data[:16].view("<i8")[:] = 3, -1
    listed = tile_base(0) + CMX
    records = np.zeros(3, DMA_DESCRIPTOR)
    records["src"] = machine.ddr.address, machine.fixed.address, listed + 64
    records["dst"] = listed, listed + 64, machine.ddr.address + 256
    records["src_width"], records["dst_width"] = 16, (16, 32, 32)
    records["src_width"][2] = 32
    records[1]["cfg"] = int(DmaCfg.SRC_LIST_RELATIVE)
    records[1]["src_list"], records[1]["src_dim1"], records[1]["src_stride1"] = listed, 1, 16
    records[1]["src_dim2"] = 5
    program = Program((free_queue("q", DmaWork(records), 3),), np.zeros(0, BARRIER_CONFIG), ())
    run = NativeExecutor().prepare(program, Order([0] * 3, [0, 1, 2]), machine.bus)
    with pytest.raises(DeviceFault, match="q, task 1: a gather reads row -1 of a table of 5"):
        run()


@pytest.mark.parametrize("pitch", [0, 4])
def test_a_copy_to_overlapping_runs_equals_the_references(pitch: int) -> None:
    made: list[Step] = [
        Copy(Side("ddr", 64, 8, ((4, 8),)), Side("ddr", 256, 8, ((4, pitch),))),
    ]
    expected = Machine().run(made, TaskByTask(ReferenceEngines()))
    assert Machine().run(made, NativeExecutor()) == expected


def test_a_reader_that_overwrites_the_source_reads_the_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A shift of bytes within DDR, by way of CMX."""
    load = Copy(Side("ddr", 0, 64, ()), Side("cmx0", 0, 64, ()))
    shifted = Copy(Side("cmx0", 0, 64, ()), Side("ddr", 4, 64, ()))
    assert eliminated([load, shifted], monkeypatch) == [False, False]
