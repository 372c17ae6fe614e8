"""Fusion of workloads that continue one another's sums into one matmul."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from driver_layer.abi.dtypes import DType
from driver_layer.abi.platforms import PLATFORMS, tile_base
from driver_layer.abi.tasks import BARRIER_CONFIG, DMA_DESCRIPTOR, DPU_MAX_DIM
from driver_layer.engines.native import NativeExecutor
from driver_layer.engines.native.lower import dpu
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace, MemoryKind
from driver_layer.npu.order import Order
from driver_layer.npu.program import DmaWork, DpuWork, Program
from driver_layer.testing.check_engines.one_task import free_queue
from driver_layer.testing.small_programs import CMX, Copy, Fill, Matmul, Side, Step, product

Shape = Callable[[list[Step]], tuple[int, int]]

SUMS = Side("cmx0", 256, 32, ())
STORE = Copy(SUMS, Side("ddr", 0, 32, ()))


def pieces(*lengths: int) -> list[Matmul]:
    """Return a matmul of [2, 16] and [4, 16], split along k into workloads of these lengths."""
    made: list[Matmul] = []
    at = 0
    for length in lengths:
        made.append(Matmul(0, at, 64 + at, 256, 2, 4, length, 16, 16, accumulate=at > 0))
        at += length
    return made


@pytest.mark.parametrize("lengths", [(8, 8), (4, 8, 4), (1, 2, 3, 10)])
def test_a_chain_along_k_is_fused_into_one_matmul(
    shape_of: Shape, lengths: tuple[int, ...]
) -> None:
    assert shape_of([*pieces(*lengths), STORE]) == (2, 2)


def test_a_chain_that_adds_to_earlier_sums_is_not_fused(shape_of: Shape) -> None:
    """Numbers may differ so much in magnitude that the order of additions matters."""
    first, *others = pieces(2, 6, 8)
    zeros = Fill(SUMS, 0)
    assert shape_of([zeros, *others, STORE]) == (4, 4)
    assert shape_of([first, zeros, *others, STORE]) == (5, 5)


def test_sums_read_in_between_are_computed(shape_of: Shape) -> None:
    first, second, third = pieces(4, 8, 4)
    taken = Copy(SUMS, Side("ddr", 128, 32, ()))
    rows, _ = shape_of([first, second, taken, third, STORE])
    assert rows == 4  # the first two workloads fused, and the other tasks


def test_a_workload_whose_operand_changes_later_is_not_fused(shape_of: Shape) -> None:
    first, second, third = pieces(4, 8, 4)
    change = Fill(Side("cmx0", 0, 4, ()), 3)
    rows, _ = shape_of([first, change, second, third, STORE])
    assert rows == 5  # the later workloads cannot be fused with it


def test_a_workload_that_does_not_continue_the_previous_one_is_not_fused(shape_of: Shape) -> None:
    first, second = pieces(8, 8)
    again = Matmul(0, 0, 64, 256, 2, 4, 8, 16, 16, accumulate=True)
    assert shape_of([first, again, STORE]) == (3, 3)
    assert shape_of([first, second, STORE]) == (2, 2)


def test_integer_workloads_whose_sums_might_overflow_are_not_fused(
    shape_of: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dpu, "MOST_INTEGERS", 15)
    assert shape_of([*pieces(8, 8), STORE]) == (3, 3)
    # A single workload is never too long.
    assert shape_of([*pieces(16), STORE]) == (1, 1)


def test_the_largest_matmuls_of_bytes_do_not_overflow() -> None:
    """Activations of 0 - 255 times weights of 255: i32 holds at most 33,025 of these products."""
    length, count = DPU_MAX_DIM, 5
    bus = Bus(Cmx(PLATFORMS["4000"]), AddressSpace())
    out = bus.space.allocate(4, MemoryKind.DMA)
    weights, sums = 0x10000, 0x20000
    bus.cmx.tiles[0][weights : weights + count * length] = 255
    bus.cmx.tiles[0][: count * length] = 0
    works: list[DmaWork | DpuWork] = []
    for number in range(count):
        at = number * length
        piece = Matmul(0, at, weights + at, sums, 1, 1, length, 4, accumulate=number > 0)
        work = product(piece)
        work.registers["act_type"] = work.registers["weight_type"] = DType.U8
        work.registers["act_zero"] = 255
        for operand in ("act", "weight", "out"):  # addresses of small programs have an offset
            work.registers[f"{operand}_address"] -= CMX
        works.append(work)
    store = np.zeros(1, DMA_DESCRIPTOR)
    store["cfg"], store["src_width"], store["dst_width"] = 1, 4, 4
    store["src"], store["dst"] = tile_base(0) + sums, out.address
    works.append(DmaWork(store))
    queues = tuple(free_queue(f"q{i}", work, 1) for i, work in enumerate(works))
    program = Program(queues, np.zeros(0, BARRIER_CONFIG), ())
    order = Order(list(range(len(works))), [0] * len(works))
    NativeExecutor().prepare(program, order, bus)()
    assert out.data.view("<f4")[0] == -255 * 255 * length * count
