"""Workloads that go on with each other's sums become one product."""

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
from driver_layer.testing.small_programs import CMX, Copy, Fill, Product, Side, Step, product

Shape = Callable[[list[Step]], tuple[int, int]]

SUMS = Side("cmx0", 256, 32, ())
STORE = Copy(SUMS, Side("ddr", 0, 32, ()))


def pieces(*lengths: int) -> list[Product]:
    """A product of [2, 16] and [4, 16] in pieces of k."""
    made: list[Product] = []
    at = 0
    for length in lengths:
        made.append(Product(0, at, 64 + at, 256, 2, 4, length, 16, 16, accumulate=at > 0))
        at += length
    return made


@pytest.mark.parametrize("lengths", [(8, 8), (4, 8, 4), (1, 2, 3, 10)])
def test_pieces_of_k_are_one_product(shape_of: Shape, lengths: tuple[int, ...]) -> None:
    assert shape_of([*pieces(*lengths), STORE]) == (2, 2)


def test_what_adds_to_sums_that_were_there_does_so_piece_by_piece(shape_of: Shape) -> None:
    """Numbers may be so far apart that the order of additions shows."""
    first, *others = pieces(2, 6, 8)
    zeros = Fill(SUMS, 0)
    assert shape_of([zeros, *others, STORE]) == (4, 4)
    assert shape_of([first, zeros, *others, STORE]) == (5, 5)


def test_sums_that_are_taken_between_are_made(shape_of: Shape) -> None:
    first, second, third = pieces(4, 8, 4)
    taken = Copy(SUMS, Side("ddr", 128, 32, ()))
    rows, _ = shape_of([first, second, taken, third, STORE])
    assert rows == 4  # two pieces together, and what follows


def test_a_piece_whose_operand_changes_is_made_before(shape_of: Shape) -> None:
    first, second, third = pieces(4, 8, 4)
    change = Fill(Side("cmx0", 0, 4, ()), 3)
    rows, _ = shape_of([first, change, second, third, STORE])
    assert rows == 5  # the others cannot go on with it


def test_a_piece_that_begins_elsewhere_is_made_alone(shape_of: Shape) -> None:
    first, second = pieces(8, 8)
    again = Product(0, 0, 64, 256, 2, 4, 8, 16, 16, accumulate=True)
    assert shape_of([first, again, STORE]) == (3, 3)
    assert shape_of([first, second, STORE]) == (2, 2)


def test_integers_whose_sums_would_not_fit_are_not_one_product(
    shape_of: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dpu, "MOST_INTEGERS", 15)
    assert shape_of([*pieces(8, 8), STORE]) == (3, 3)
    # A workload is none too long by itself.
    assert shape_of([*pieces(16), STORE]) == (1, 1)


def test_the_largest_products_of_bytes_do_not_wrap_around() -> None:
    """Activations of 0 less 255, times weights of 255: i32 holds no more than 33,025 of them."""
    length, count = DPU_MAX_DIM, 5
    bus = Bus(Cmx(PLATFORMS["4000"]), AddressSpace())
    out = bus.space.allocate(4, MemoryKind.DMA)
    weights, sums = 0x10000, 0x20000
    bus.cmx.tiles[0][weights : weights + count * length] = 255
    bus.cmx.tiles[0][: count * length] = 0
    works: list[DmaWork | DpuWork] = []
    for number in range(count):
        at = number * length
        piece = Product(0, at, weights + at, sums, 1, 1, length, 4, accumulate=number > 0)
        work = product(piece)
        work.registers["act_type"] = work.registers["weight_type"] = DType.U8
        work.registers["act_zero"] = 255
        for operand in ("act", "weight", "out"):  # those of small programs lie further behind
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
