"""The native executor leaves the same bytes as running the tasks one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.abi.dtypes import DType
from driver_layer.abi.platforms import CMX_BASE, PLATFORMS, tile_base
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW, Access
from driver_layer.abi.shave_text import assemble
from driver_layer.abi.tasks import (
    BARRIER_CONFIG,
    DMA_DESCRIPTOR,
    DPU_REGISTERS,
    DPU_VARIANT,
    DmaCfg,
    DpuWorkload,
)
from driver_layer.engines.contract import Executor
from driver_layer.engines.native import NativeExecutor
from driver_layer.engines.reference import ReferenceEngines
from driver_layer.engines.task_by_task import TaskByTask
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace, MemoryKind
from driver_layer.npu.order import Order
from driver_layer.npu.program import DmaWork, DpuWork, Program, ShaveWork
from driver_layer.testing.check_engines import CHECKS, Bench
from driver_layer.testing.check_engines.one_task import OneTask, free_queue

BYTES = 512
"""Of each memory that programs work in: small, so that what they reach overlaps."""

CMX = 0x20000


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[Bench], None]) -> None:
    check(Bench.make(OneTask(NativeExecutor())))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract_of_an_executor_that_runs_task_by_task(check: Callable[[Bench], None]) -> None:
    check(Bench.make(OneTask(TaskByTask(ReferenceEngines()))))


@dataclass(frozen=True)
class Side:
    """A place in a memory: "ddr", "fixed" (never written), "cmx0" or "cmx1"."""

    memory: str
    offset: int
    width: int
    dims: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Copy:
    src: Side
    dst: Side


@dataclass(frozen=True)
class Fill:
    dst: Side
    value: int


@dataclass(frozen=True)
class Add:
    """SHAVE: u8 rows plus one, from one place of a tile to another."""

    tile: int
    src: int
    dst: int
    rows: int
    cols: int
    src_pitch: int
    dst_pitch: int


@dataclass(frozen=True)
class Product:
    """DPU: i8 by i8 to f32, exact."""

    tile: int
    act: int
    weight: int
    out: int
    m: int
    n: int
    k: int
    pitch: int


Step = Copy | Fill | Add | Product


@st.composite
def sides(draw: st.DrawFn, memory: str, size: int) -> Side:
    """Runs of bytes that come to a size, in one of the shapes that compilers use, or any."""
    width = draw(st.sampled_from([w for w in (4, 8, 16, 32, size) if size % w == 0]))
    dims: list[tuple[int, int]] = []
    reach = width
    count = size // width
    if count > 1:
        stride = draw(st.sampled_from([width, width, width + 4, 2 * width]))
        reach = (count - 1) * stride + width
        dims.append((count, stride))
    offset = draw(st.integers(0, (BYTES - reach) // 4)) * 4
    return Side(memory, offset, width, tuple(dims))


@st.composite
def copies(draw: st.DrawFn) -> Copy:
    size = draw(st.sampled_from([16, 32, 64, 128]))
    src, dst = draw(
        st.sampled_from(
            [
                ("ddr", "cmx0"),
                ("fixed", "cmx0"),
                ("ddr", "cmx1"),
                ("cmx0", "ddr"),
                ("cmx1", "ddr"),
                ("cmx0", "cmx1"),
                ("ddr", "ddr"),
            ]
        )
    )
    return Copy(draw(sides(src, size)), draw(sides(dst, size)))


def places(size: int) -> st.SearchStrategy[int]:
    """Offsets in a tile; few, so that tasks meet."""
    return st.integers(0, (BYTES - size) // 16).map(lambda n: 16 * n)


@st.composite
def sums(draw: st.DrawFn) -> Add:
    rows, cols = draw(st.sampled_from([(1, 16), (1, 64), (4, 16), (8, 4)]))
    pitches = [draw(st.sampled_from([cols, cols, cols + 4, 0])) for _ in range(2)]
    pitches[1] = pitches[1] or cols
    src, dst = (draw(places((rows - 1) * pitch + cols)) for pitch in pitches)
    return Add(draw(st.integers(0, 1)), src, dst, rows, cols, *pitches)


@st.composite
def products(draw: st.DrawFn) -> Product:
    m, n, k = draw(st.sampled_from([(1, 4, 16), (2, 4, 8), (4, 2, 16)]))
    pitch = draw(st.sampled_from([4 * n, 4 * n + 16]))
    out = draw(places((m - 1) * pitch + 4 * n))
    act, weight = draw(places(m * k)), draw(places(n * k))
    return Product(draw(st.integers(0, 1)), act, weight, out, m, n, k, pitch)


steps = st.one_of(
    copies(),
    copies(),
    copies(),
    sums(),
    products(),
    st.builds(Fill, sides("cmx0", 32), st.integers(0, 255)),
)


class Machine:
    """Memory, and a program over it."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.bus = Bus(Cmx(PLATFORMS["4000"]), AddressSpace())
        self.ddr = self.bus.space.allocate(BYTES, MemoryKind.DMA)
        self.fixed = self.bus.space.allocate(BYTES, MemoryKind.DMA, writable=False)
        for memory in (self.ddr, self.fixed):
            memory.write(0, random.integers(0, 256, BYTES, np.uint8).tobytes())
        for tile in (0, 1):
            self.bus.cmx.tiles[tile][CMX : CMX + BYTES] = random.integers(0, 256, BYTES, np.uint8)

    def run(self, made: list[Step], executor: Executor) -> bytes:
        """Run steps one after the other, as far as anybody can tell; give DDR."""
        works = [self._work(step) for step in made]
        queues = tuple(free_queue(f"q{i}", work, 1) for i, work in enumerate(works))
        program = Program(queues, np.zeros(0, BARRIER_CONFIG), ())
        order = Order(list(range(len(works))), [0] * len(works))
        executor.prepare(program, order, self.bus)()
        return self.ddr.data.tobytes()

    def _work(self, step: Step) -> DmaWork | DpuWork | ShaveWork:
        if isinstance(step, Copy | Fill):
            return DmaWork(self._descriptor(step))
        return _sum(step) if isinstance(step, Add) else _product(step)

    def _descriptor(self, step: Copy | Fill) -> np.ndarray:
        record = np.zeros(1, DMA_DESCRIPTOR)
        record["cfg"] = 1
        named = {"dst": step.dst}
        if isinstance(step, Copy):
            named["src"] = step.src
        else:
            record["cfg"] |= int(DmaCfg.MEMSET_EN)
            record["memset_data"] = step.value
        for name, side in named.items():
            record[name] = self._address(side.memory) + side.offset
            record[f"{name}_width"] = side.width
            for number, (length, stride) in enumerate(reversed(side.dims), 1):
                record[f"{name}_dim{number}"] = length - 1
                record[f"{name}_stride{number}"] = stride
        return record

    def _address(self, memory: str) -> int:
        if memory.startswith("cmx"):
            return tile_base(int(memory[3:])) + CMX
        return {"ddr": self.ddr, "fixed": self.fixed}[memory].address


ADD_ONE = assemble("ld v0, w0\nimm v1, 1\nadd v0, v0, v1\nst w1, v0\nend")


def _sum(step: Add) -> ShaveWork:
    head = np.zeros(1, KERNEL_ARGS)
    head["window_count"], head["grid"] = 2, (1, 1, step.rows)
    windows = np.zeros(2, WINDOW)
    sides = ((step.src, step.src_pitch), (step.dst, step.dst_pitch))
    for window, (offset, pitch) in zip(windows, sides, strict=True):
        window["address"] = tile_base(step.tile) + CMX + offset
        window["cols"], window["col_stride"], window["type"] = step.cols, 1, DType.U8
        window["strides"] = (0, 0, pitch)
        window["access"] = Access.READ | Access.WRITE
    return ShaveWork(step.tile, [ADD_ONE], [0], [head.tobytes() + windows.tobytes()])


def _product(step: Product) -> DpuWork:
    base = tile_base(step.tile) + CMX
    fields: dict[str, Any] = {
        "workload": DpuWorkload.MATMUL,
        "act_type": DType.I8,
        "weight_type": DType.I8,
        "out_type": DType.FP32,
        "alpha": 1.0,
        "act_address": base + step.act,
        "weight_address": base + step.weight,
        "out_address": base + step.out,
        "batch": 1,
        "m": step.m,
        "n": step.n,
        "k": step.k,
        "act_strides": (0, step.k, 1),
        "weight_strides": (0, step.k, 1),
        "out_strides": (0, step.pitch, 4),
    }
    registers, variant = np.zeros(1, DPU_REGISTERS), np.zeros(1, DPU_VARIANT)
    for name, value in fields.items():
        registers[name] = value
    variant["m_end"], variant["n_end"] = step.m, step.n
    return DpuWork(step.tile, registers, variant, [0, 1])


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, min_size=1, max_size=12))
def test_any_program_leaves_what_the_reference_leaves(made: list[Step]) -> None:
    """Copies are left out, and tasks run side by side, only where nobody can tell."""
    expected = Machine().run(made, TaskByTask(ReferenceEngines()))
    assert Machine().run(made, NativeExecutor()) == expected


def test_what_lies_between_rows_is_not_taken_for_theirs() -> None:
    """A copy goes between two rows of a product; a later copy takes a piece of both."""
    made: list[Step] = [
        Copy(Side("ddr", 0, 16, ()), Side("cmx1", 32, 16, ())),
        Product(1, act=0, weight=0, out=16, m=2, n=4, k=8, pitch=32),
        Copy(Side("cmx1", 4, 32, ()), Side("ddr", 0, 32, ())),
    ]
    expected = Machine().run(made, TaskByTask(ReferenceEngines()))
    assert Machine().run(made, NativeExecutor()) == expected


LOAD = Copy(Side("fixed", 0, 64, ()), Side("cmx0", 0, 64, ()))
STORE = Copy(Side("cmx0", 64, 64, ()), Side("ddr", 0, 64, ()))


def dropped(made: list[Step], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Which steps the native executor leaves out."""
    from driver_layer.engines.native import executor

    seen: list[bool] = []
    real = executor.forward

    def forward(*arguments: Any) -> Any:
        found = real(*arguments)
        seen.extend(found.dropped.tolist())
        return found

    monkeypatch.setattr(executor, "forward", forward)
    Machine().run(made, NativeExecutor())
    return seen


def test_copies_in_and_out_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    add = Add(0, 0, 64, 4, 16, 16, 16)
    assert dropped([LOAD, add, STORE], monkeypatch) == [True, False, True]


def test_a_copy_whose_source_changes_before_it_is_read_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load = Copy(Side("ddr", 0, 64, ()), Side("cmx0", 0, 64, ()))
    change = Copy(Side("fixed", 0, 16, ()), Side("ddr", 32, 16, ()))
    add = Add(0, 0, 64, 4, 16, 16, 16)
    made = [load, change, add, STORE]
    assert dropped(made, monkeypatch) == [False, False, False, True]


def test_what_two_copies_take_stays_in_cmx(monkeypatch: pytest.MonkeyPatch) -> None:
    add = Add(0, 0, 64, 4, 16, 16, 16)
    again = Copy(Side("cmx0", 64, 64, ()), Side("ddr", 256, 64, ()))
    assert dropped([LOAD, add, STORE, again], monkeypatch) == [True, False, False, False]


def test_a_fault_names_the_task_and_the_address() -> None:
    stray = Copy(Side("fixed", 0, 64, ()), Side("fixed", 64, 64, ()))
    with pytest.raises(DeviceFault, match="q1, task 0: write to read-only memory"):
        Machine().run([LOAD, stray], NativeExecutor())


def test_a_product_is_written_where_a_copy_would_spread_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    product = Product(0, act=0, weight=32, out=64, m=4, n=2, k=16, pitch=8)
    spread = Copy(Side("cmx0", 64, 32, ()), Side("ddr", 0, 8, ((4, 40),)))
    assert dropped([LOAD, product, spread], monkeypatch) == [True, False, True]


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


def test_a_copy_to_no_tile_is_a_fault_beside_one_to_two_tiles() -> None:
    """Both are alike but for their addresses."""
    machine = Machine()
    records = np.zeros(2, DMA_DESCRIPTOR)
    records["src"] = machine.ddr.address
    records["src_width"] = records["dst_width"] = 16
    records["dst"] = tile_base(0) | tile_base(1), tile_base(0) & ~(tile_base(0) - CMX_BASE)
    program = Program((free_queue("q", DmaWork(records), 2),), np.zeros(0, BARRIER_CONFIG), ())
    with pytest.raises(DeviceFault, match="q, task 1: no such tiles"):
        NativeExecutor().prepare(program, Order([0, 0], [0, 1]), machine.bus)


def test_a_gather_to_two_tiles_reaches_both() -> None:
    machine = Machine()
    machine.ddr.data[:16].view("<i8")[:] = 3, 1
    tiles = [tile_base(tile) + CMX for tile in (0, 1)]
    records = np.zeros(4, DMA_DESCRIPTOR)
    # The list goes to tile 0, the rows to both, and both of them out again.
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


@pytest.mark.parametrize("pitch", [0, 8, 12])
def test_an_output_that_overlaps_itself_is_what_the_reference_makes_of_it(pitch: int) -> None:
    made: list[Step] = [
        Product(0, act=0, weight=64, out=128, m=4, n=4, k=8, pitch=pitch),
        Copy(Side("cmx0", 128, 64, ()), Side("ddr", 0, 64, ())),
        Copy(Side("ddr", 64, 8, ((4, 8),)), Side("ddr", 256, 8, ((4, pitch),))),
    ]
    expected = Machine().run(made, TaskByTask(ReferenceEngines()))
    assert Machine().run(made, NativeExecutor()) == expected


def tiles_of_a_product(shape: tuple[int, int, int], rows: int, columns: int) -> tuple[Any, ...]:
    """A product of i8 [m, k] and [n, k] to f32 [m, n], cut into workloads as compilers do."""
    m, n, k = shape
    random = np.random.default_rng(1)
    act = random.integers(-128, 128, (m, k), np.int8)
    weight = random.integers(-128, 128, (n, k), np.int8)
    bus = Bus(Cmx(PLATFORMS["4000"]), AddressSpace())
    memory = {}
    for name, content in (("act", act), ("weight", weight), ("out", np.zeros((m, n), "<f4"))):
        memory[name] = bus.space.allocate(content.nbytes, MemoryKind.DMA)
        memory[name].write(0, content.tobytes())
    works: list[Any] = []
    cmx = tile_base(0) + CMX
    places = {"act": cmx, "weight": cmx + 0x10000, "out": cmx + 0x20000}

    def copy(**fields: int) -> None:
        record = np.zeros(1, DMA_DESCRIPTOR)
        for name, value in fields.items():
            record[name] = value
        works.append(DmaWork(record))

    for first in range(0, n, columns):
        width = min(columns, n - first)
        size = width * k
        source = memory["weight"].address + first * k
        copy(src=source, dst=places["weight"], src_width=size, dst_width=size)
        for row in range(0, m, rows):
            height = min(rows, m - row)
            size = height * k
            source = memory["act"].address + row * k
            copy(src=source, dst=places["act"], src_width=size, dst_width=size)
            product = Product(0, 0, 0x10000, 0x20000, height, width, k, 4 * width)
            works.append(_product(product))
            target = memory["out"].address + 4 * (row * n + first)
            copy(
                cfg=1,
                src=places["out"],
                dst=target,
                src_width=4 * width * height,
                dst_width=4 * width,
                dst_dim1=height - 1,
                dst_stride1=4 * n,
            )
    queues = tuple(free_queue(f"q{i}", work, 1) for i, work in enumerate(works))
    program = Program(queues, np.zeros(0, BARRIER_CONFIG), ())
    order = Order(list(range(len(works))), [0] * len(works))
    expected = act.astype(np.int64) @ weight.astype(np.int64).T
    return program, order, bus, memory["out"], expected


@pytest.mark.parametrize(
    ("shape", "rows", "columns", "calls"),
    [
        ((48, 96, 64), 16, 24, 2),  # two parts of 48 columns
        ((33, 50, 48), 33, 50, 2),
        ((128, 400, 32), 32, 100, 9),  # a part of 192, and eight of up to 48
        ((9, 30, 20), 9, 7, 1),
    ],
)
def test_the_workloads_of_a_product_are_merged_and_cut_anew(
    shape: tuple[int, int, int],
    rows: int,
    columns: int,
    calls: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from driver_layer.engines.native import executor

    program, order, bus, out, expected = tiles_of_a_product(shape, rows, columns)
    tables: list[Any] = []
    real = executor.flatten

    def flatten(*arguments: Any) -> Any:
        tables.append(real(*arguments))
        return tables[-1]

    monkeypatch.setattr(executor, "flatten", flatten)
    NativeExecutor().prepare(program, order, bus)()
    found = out.data.view("<f4").reshape(expected.shape)
    assert np.array_equal(found, expected)
    assert len(tables[0].table.rows) == calls


def test_a_reader_that_overwrites_the_source_reads_the_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bytes that are shifted within DDR by way of CMX."""
    load = Copy(Side("ddr", 0, 64, ()), Side("cmx0", 0, 64, ()))
    shifted = Copy(Side("cmx0", 0, 64, ()), Side("ddr", 4, 64, ()))
    assert dropped([load, shifted], monkeypatch) == [False, False]
