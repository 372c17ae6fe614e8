"""Merging of adjoining workloads into one matmul, which is tiled again for the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.platforms import PLATFORMS, tile_base
from driver_layer.abi.tasks import BARRIER_CONFIG, DMA_DESCRIPTOR
from driver_layer.engines.native import NativeExecutor, executor
from driver_layer.engines.native.dispatch.team import Team
from driver_layer.engines.native.dpu.problem import MANY_ROWS
from driver_layer.engines.native.jit.host import Isa, detect
from driver_layer.engines.native.lower import merge
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace, MemoryKind
from driver_layer.npu.order import Order
from driver_layer.npu.program import DmaWork, Program
from driver_layer.testing.check_engines.one_task import free_queue
from driver_layer.testing.small_programs import CMX, Matmul, product

THREADS = 2
"""Number of threads that share the matmul."""

_KINDS = {"i1": "i8", "<f2": "f16"}
"""Types of activations by their name in NumPy."""


def tiles_of_a_product(
    shape: tuple[int, int, int], rows: int, columns: int, kind: str
) -> tuple[Any, ...]:
    """Return a matmul of i8 or f16 [m, k] and i8 [n, k] to f32 [m, n], tiled as compilers do."""
    m, n, k = shape
    random = np.random.default_rng(1)
    act = random.integers(-128, 128, (m, k)).astype(kind)
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
            size = height * k * act.itemsize
            source = memory["act"].address + row * k * act.itemsize
            copy(src=source, dst=places["act"], src_width=size, dst_width=size)
            step = Matmul(0, 0, 0x10000, 0x20000, height, width, k, 4 * width)
            work = product(step)
            work.registers["act_type"] = ELEMENT_TYPES[_KINDS[kind]].code
            work.registers["act_strides"] = 0, k * act.itemsize, act.itemsize
            works.append(work)
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
        ((48, 96, 64), 16, 24, 2),  # 64 columns for one thread, 32 for the other
        ((33, 50, 48), 33, 50, 2),
        ((9, 30, 20), 9, 7, 1),
    ],
)
def test_workloads_of_a_matmul_are_merged_and_tiled_again(
    shape: tuple[int, int, int],
    rows: int,
    columns: int,
    calls: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(calls_of_a_product(shape, rows, columns, monkeypatch)) == calls


def test_a_wide_matmul_is_tiled_to_the_kernels_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The width depends on the processor's tile registers or vectors."""
    suits: list[int] = []
    real = merge._tile

    def tile(words: Any, template: Any, sharers: Any) -> Any:
        suits.append(template.tile)
        return real(words, template, sharers)

    monkeypatch.setattr(merge, "_tile", tile)
    calls = len(calls_of_a_product((64, 2800, 32), 32, 700, monkeypatch))
    (part,) = suits
    fewest = -(-2800 // part)
    assert fewest <= calls < fewest + THREADS, "no wider, and a multiple of the threads"


@pytest.mark.parametrize(
    ("rows", "workload", "exact"),
    [(9, 9, 9), (16, 16, 16), (17, 17, MANY_ROWS), (32, 16, MANY_ROWS)],
)
def test_the_kernel_suits_the_rows_after_merging(
    rows: int, workload: int, exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = calls_of_a_product((rows, 2000, 64), workload, 500, monkeypatch, "<f2")
    written_for = {int(key.split()[-1]) for key in calls}
    assert written_for == {exact if detect().isa is Isa.AVX512 else MANY_ROWS}


def calls_of_a_product(
    shape: tuple[int, int, int],
    rows: int,
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    kind: str = "i1",
) -> list[str]:
    """Run a matmul, check its output, and return the kernel of each call."""
    program, order, bus, out, expected = tiles_of_a_product(shape, rows, columns, kind)
    tables: list[Any] = []
    real = executor.build_table

    def build_table(*arguments: Any) -> Any:
        tables.append(real(*arguments))
        return tables[-1]

    monkeypatch.setattr(executor, "build_table", build_table)
    team = Team(executor.host_kernels(detect()), THREADS)
    NativeExecutor(team=team).prepare(program, order, bus)()
    assert np.array_equal(out.data.view("<f4").reshape(expected.shape), expected)
    calls = tables[0].calls
    return [calls.templates[number].spec.key for number in calls.template.tolist()]
