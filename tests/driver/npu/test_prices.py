"""Prices of tasks, computed from their descriptors."""

from __future__ import annotations

import numpy as np
import pytest

from driver_layer.abi import tasks as abi
from driver_layer.abi.dtypes import DType
from driver_layer.abi.platforms import PLATFORMS, tile_base
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW
from driver_layer.abi.shave_text import assemble
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace
from driver_layer.npu.timeline import (
    Engine,
    Price,
    Pricer,
)

LUNAR = PLATFORMS["4000"]
IN_DDR = 0x200000000


def bus() -> Bus:
    return Bus(Cmx(LUNAR), AddressSpace())


def descriptor(nbytes: int, src: int, dst: int, **fields: int) -> np.ndarray:
    record = np.zeros(1, abi.DMA_DESCRIPTOR)
    record["src"], record["dst"] = src, dst
    record["src_width"] = record["dst_width"] = nbytes
    for name, value in fields.items():
        record[name] = value
    return record[0]


def dma(nbytes: int, src: int, dst: int, **fields: int) -> Price:
    return Pricer(LUNAR).dma(descriptor(nbytes, src, dst, **fields), bus())


def test_only_the_ddr_sides_of_a_transfer_use_ddr_bandwidth() -> None:
    assert (dma(4096, IN_DDR, tile_base(0)).ddr_bytes, dma(4096, 0, IN_DDR).ddr_bytes) == (
        4096,
        8192,
    )
    inside = dma(4096, tile_base(0), tile_base(1))
    assert (inside.ddr_bytes, inside.nbytes, inside.tile) == (0, 4096, None)
    assert inside.latency_ns == pytest.approx(32 / 0.971)


def test_bits_above_an_address_are_ignored() -> None:
    assert dma(4096, 1 << 48 | tile_base(0), tile_base(1)).ddr_bytes == 0


def test_a_multicast_costs_as_much_as_a_transfer_to_one_tile() -> None:
    assert dma(4096, IN_DDR, tile_base(0) | tile_base(1)) == dma(4096, IN_DDR, tile_base(0))


def test_short_runs_cost_more_and_joined_runs_do_not() -> None:
    """64 rows of 32 bytes: contiguous in CMX, in DDR 4096 bytes apart or contiguous."""
    fields = {"cfg": 1, "dst_width": 64 * 32, "src_dim1": 63}
    apart = dma(32, IN_DDR, tile_base(0), src_stride1=4096, **fields)
    joined = dma(32, IN_DDR, tile_base(0), src_stride1=32, **fields)
    assert apart.nbytes == joined.nbytes == 64 * 32
    assert (apart.ddr_bytes, joined.ddr_bytes) == (64 * 64, 64 * 32)
    assert apart.busy_ns == pytest.approx(64 / 0.971)
    assert joined == dma(64 * 32, IN_DDR, tile_base(0))


def test_runs_join_up_to_the_first_gap() -> None:
    """[3, 2, 4 x 16 bytes]: the inner two dimensions are contiguous, the outer one is not."""
    fields = {
        "cfg": 3,
        "dst_width": 384,
        "src_dim1": 3,
        "src_stride1": 16,
        "src_dim2": 1,
        "src_stride2": 64,
        "src_dim3": 2,
        "src_stride3": 4096,
    }
    assert dma(16, IN_DDR, tile_base(0), **fields).ddr_bytes == 3 * 128
    fields["src_stride2"] = 100
    assert dma(16, IN_DDR, tile_base(0), **fields).ddr_bytes == 6 * 64


def test_a_gather_costs_a_run_for_each_row_and_a_fill_reads_nothing() -> None:
    rows = {"cfg": abi.DmaCfg.SRC_LIST_RELATIVE | 1, "src_dim1": 9, "src_stride1": 4096}
    gather = dma(100, IN_DDR, tile_base(0), dst_width=1000, **rows)
    assert (gather.nbytes, gather.ddr_bytes) == (1000, 10 * 128)
    rows["src_stride1"] = 100
    assert dma(100, IN_DDR, tile_base(0), dst_width=1000, **rows) == gather, "rows in any order"
    fill = dma(1024, 0, tile_base(0), cfg=abi.DmaCfg.MEMSET_EN)
    assert (fill.ddr_bytes, fill.nbytes) == (0, 1024)
    assert fill.busy_ns == pytest.approx(16 / 0.971)


def test_a_transfer_of_seven_dimensions_is_a_fault() -> None:
    with pytest.raises(DeviceFault, match="7 dimensions"):
        dma(4, IN_DDR, tile_base(0), cfg=6)


def product(variants: list[tuple[int, int, int, int]], **fields: int) -> Price:
    registers = np.zeros(1, abi.DPU_REGISTERS)
    given = {
        "workload": abi.DpuWorkload.MATMUL,
        "act_type": DType.I8,
        "weight_type": DType.U4,
        "out_type": DType.FP16,
        "batch": 2,
        "m": 64,
        "n": 128,
        "k": 256,
    }
    for name, value in (given | fields).items():
        registers[name] = value
    parts = np.zeros(len(variants), abi.DPU_VARIANT)
    for part, (m_begin, m_end, n_begin, n_end) in zip(parts, variants, strict=True):
        part["m_begin"], part["m_end"] = m_begin, m_end
        part["n_begin"], part["n_end"] = n_begin, n_end
    return Pricer(LUNAR).dpu(registers[0], list(parts), 3, bus())


def test_a_matmul_costs_the_sum_of_its_variants() -> None:
    whole = product([(0, 64, 0, 128)])
    halves = product([(0, 64, 0, 64), (0, 64, 64, 128)])
    assert whole.macs == halves.macs == 2 * 64 * 128 * 256
    assert whole.busy_ns == pytest.approx(whole.macs / 2048 / 1.7)
    assert halves.busy_ns == pytest.approx(whole.busy_ns)
    assert whole.nbytes == 2 * (64 * 256 + 128 * 256 // 2 + 64 * 128 * 2)
    assert halves.nbytes - whole.nbytes == 2 * 64 * 256, "activations are read again"
    assert (whole.engine, whole.tile) == (Engine.DPU, 3)


def test_an_accumulating_matmul_reads_its_output() -> None:
    plain = product([(0, 64, 0, 128)], out_type=DType.FP32)
    adding = product([(0, 64, 0, 128)], out_type=DType.FP32, flags=abi.DpuFlag.ACCUMULATE)
    assert adding.nbytes - plain.nbytes == 2 * 64 * 128 * 4


@pytest.mark.parametrize(
    ("variant", "fields", "message"),
    [
        ((0, 65, 0, 128), {}, "variant of 65 x 128 in an output of 64 x 128"),
        ((8, 8, 0, 128), {}, "variant of 0 x 128"),
        ((9, 8, 0, 128), {}, "variant of -1 x 128"),
        ((0, 64, 0, 128), {"act_type": 99}, "unknown element type 99"),
        ((0, 64, 0, 128), {"workload": 7}, "unknown DPU workload 7"),
    ],
)
def test_a_malformed_workload_is_a_fault(
    variant: tuple[int, int, int, int], fields: dict[str, int], message: str
) -> None:
    with pytest.raises(DeviceFault, match=message):
        product([variant], **fields)


def test_a_kernel_is_priced_by_its_windows_and_its_grid() -> None:
    head = np.zeros(1, KERNEL_ARGS)
    head["window_count"], head["grid"] = 2, (4, 3, 2)
    windows = np.zeros(2, WINDOW)
    windows["cols"], windows["type"] = 64, DType.FP16
    windows["col_stride"] = (0, 2)
    args = head.tobytes() + windows.tobytes()
    cost = Pricer(LUNAR).shave(assemble("ld v0, w0\nexp v0, v0\nst w1, v0\nend"), args, 1, bus())
    assert cost.nbytes == 24 * (2 + 128), "the first window repeats one value"
    cycles = 2200 + 12 * (1 + 2) / 0.56
    assert cost.alone_ns == pytest.approx(cycles / 0.971)
    assert (cost.engine, cost.tile) == (Engine.SHAVE, 1)
