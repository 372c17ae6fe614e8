"""Checks of transfers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driver_layer.abi.platforms import tile_base
from driver_layer.abi.tasks import (
    DMA_DESCRIPTOR,
    DmaCfg,
)
from driver_layer.testing.check_engines.bench import Bench, faults, one


def check_strided_copies_move_every_element(bench: Bench) -> None:
    """Check a transposition by DMA: two strided dimensions, widths of one element."""
    values = np.arange(12, dtype=np.uint16).reshape(3, 4)
    source, target = bench.ddr(values), bench.ddr(np.zeros(12, np.uint16))
    bench.engines.dma(
        one(
            DMA_DESCRIPTOR,
            cfg=2,
            src=source,
            dst=target,
            src_width=2,
            dst_width=2,
            src_dim1=2,
            src_stride1=8,
            src_dim2=3,
            src_stride2=2,
            dst_dim1=2,
            dst_stride1=2,
            dst_dim2=3,
            dst_stride2=6,
        ),
        bench.bus,
    )()
    assert np.array_equal(bench.read(target, "<u2", 12).reshape(4, 3), values.T)


def check_copies_may_be_cut_differently_on_both_sides(bench: Bench) -> None:
    """Check a copy of twelve contiguous bytes to three runs of four."""
    source = bench.ddr(np.arange(12, dtype=np.uint8))
    target = bench.cmx(0x100, np.zeros(32, np.uint8))
    bench.engines.dma(
        one(
            DMA_DESCRIPTOR,
            cfg=1,
            src=source,
            dst=target,
            src_width=12,
            dst_width=4,
            dst_dim1=2,
            dst_stride1=10,
        ),
        bench.bus,
    )()
    moved = bench.read(target, "u1", 24)
    assert moved[0:4].tolist() == [0, 1, 2, 3]
    assert moved[10:14].tolist() == [4, 5, 6, 7]
    assert moved[20:24].tolist() == [8, 9, 10, 11]


def check_a_write_may_select_several_tiles(bench: Bench) -> None:
    """Check a multicast: one read, written to tiles 0 and 2."""
    source = bench.ddr(np.arange(8, dtype=np.uint8))
    address = tile_base(0) | tile_base(2)
    bench.engines.dma(
        one(DMA_DESCRIPTOR, src=source, dst=address, src_width=8, dst_width=8), bench.bus
    )()
    assert bench.read(tile_base(0), "u1", 8).tolist() == list(range(8))
    assert bench.read(tile_base(1), "u1", 8).tolist() == [0] * 8
    assert bench.read(tile_base(2), "u1", 8).tolist() == list(range(8))


def _gather(bench: Bench, rows: Sequence[int], length: int = 0) -> tuple[Any, int]:
    """Return a gather from memory of five rows; ``length`` is the declared length of the table."""
    table = bench.ddr(np.arange(20, dtype=np.float16).reshape(5, 4))
    listed = bench.cmx(0x400, np.array(rows, np.int64))
    target = bench.cmx(0x800, np.zeros(64, np.uint8))
    descriptor = one(
        DMA_DESCRIPTOR,
        cfg=DmaCfg.SRC_LIST_RELATIVE | 1,
        src=table,
        src_list=listed,
        src_width=8,
        src_dim1=len(rows) - 1,
        src_stride1=8,
        src_dim2=length,
        dst=target,
        dst_width=8 * len(rows),
    )
    return descriptor, target


def check_a_gather_follows_its_list(bench: Bench) -> None:
    """Check that rows are gathered in the order of the list, with repetitions."""
    descriptor, target = _gather(bench, [3, 0, 3])
    bench.engines.dma(descriptor, bench.bus)()
    rows = bench.read(target, "<f2", 12).reshape(3, 4)
    assert rows[:, 0].tolist() == [12, 0, 12]


def check_a_gather_outside_its_table_is_a_fault(bench: Bench) -> None:
    """Check that an invalid row number, which is data, is a fault when the task runs."""
    for row in (-1, 5, 1 << 40):
        descriptor, _ = _gather(bench, [0, row])
        faults(bench.engines.dma(descriptor, bench.bus))


def check_a_gather_beyond_its_table_is_a_fault_that_names_the_row(bench: Bench) -> None:
    """Check that rows after the table are not read, as they belong to another tensor."""
    for row in (-1, 3, 4):
        descriptor, target = _gather(bench, [2, row], length=3)
        run = bench.engines.dma(descriptor, bench.bus)
        assert faults(run).message == f"a gather reads row {row} of a table of 3"
        assert not bench.read(target, "u1", 16).any()
    descriptor, _ = _gather(bench, [0], length=4096)
    faults(lambda: bench.engines.dma(descriptor, bench.bus))


def check_transfers_out_of_memory_are_faults(bench: Bench) -> None:
    """Check that transfers from or to unmapped memory are faults."""
    source = bench.ddr(np.zeros(16, np.uint8))
    good = {"src": source, "dst": tile_base(0), "src_width": 16, "dst_width": 16}
    for bad in (
        {"src": source + 1},
        {"src": 0},
        {"dst": tile_base(0) + (2 << 20) - 8},
        {"dst": 1 << 41},
        {"dst": 0x40000000},
        {"src_width": 12},
        {"cfg": 7},
        {"cfg": 5, "dst_dim5": 65535, "src_dim5": 65535, "dst_stride5": 1 << 30},
    ):
        descriptor = one(DMA_DESCRIPTOR, **(good | bad))
        faults(lambda descriptor=descriptor: bench.engines.dma(descriptor, bench.bus))
