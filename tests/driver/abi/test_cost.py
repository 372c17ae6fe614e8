"""The cost functions, against examples of docs/reference/npu.md or computed by hand."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver_layer.abi.cost import (
    KernelCounts,
    MatmulShape,
    Space,
    dma_ns,
    dpu_ns,
    kernel_work,
    shave_ns,
)
from driver_layer.abi.cost.dma import dma_busy_ns, dma_latency_ns, padded_bytes
from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.platforms import PLATFORMS, Platform
from driver_layer.abi.shave_text import assemble

METEOR, LUNAR, PANTHER = PLATFORMS.values()
DDR, CMX = Space.DDR, Space.CMX
MIB = 1 << 20

any_platform = st.sampled_from(list(PLATFORMS.values()))
any_space = st.sampled_from(Space)
any_type = st.sampled_from(list(ELEMENT_TYPES))


def rate(platform: Platform, source: Space, target: Space) -> float:
    """Return the bytes per ns (GB/s) of a long transfer."""
    return 16 * MIB / dma_busy_ns(platform, 16 * MIB, source, target)


# DMA


def test_a_port_of_64_bytes_at_971_mhz_moves_62_gb_per_s() -> None:
    assert rate(LUNAR, CMX, CMX) == pytest.approx(64 * 0.971)
    assert rate(LUNAR, DDR, DDR) == pytest.approx(62.144)


def test_the_cmx_side_of_a_mixed_transfer_has_96_percent_of_its_bandwidth() -> None:
    for source, target in ((DDR, CMX), (CMX, DDR)):
        assert rate(LUNAR, source, target) == pytest.approx(62.144 * 0.958589)
        assert rate(PANTHER, source, target) == pytest.approx(64 * 1.114 * 0.958589)


def test_on_3720_ddr_is_slower_than_a_port() -> None:
    assert rate(METEOR, CMX, CMX) == pytest.approx(32 * 0.975)
    assert rate(METEOR, DDR, CMX) == pytest.approx(27)


def test_the_latency_is_that_of_the_slower_side() -> None:
    assert dma_latency_ns(LUNAR, CMX, CMX) == pytest.approx(32 / 0.971)
    assert dma_latency_ns(LUNAR, DDR, CMX) == pytest.approx(300 + 50 / 0.971)
    assert dma_latency_ns(LUNAR, CMX, DDR) == pytest.approx(300 + 50 / 0.971)
    assert dma_latency_ns(METEOR, DDR, CMX) == pytest.approx(956)
    assert dma_latency_ns(LUNAR, None, CMX) == pytest.approx(32 / 0.971)


def test_the_formula_in_dpu_cycles_is_that_of_the_reference() -> None:
    """Cycles = max(latencies) + max(in / B_in, out / (B_out * eff)) * dpu / cmx, at 1700 MHz."""
    latency = 300 * 1700 / 1000 + 50 * 1700 / 971
    cycles = latency + max(65536 / 64, 65536 / (64 * 0.958589)) * 1700 / 971
    assert dma_ns(LUNAR, 65536, DDR, CMX) == pytest.approx(cycles / 1.7)


def test_runs_shorter_than_a_word_take_a_cycle_each() -> None:
    """A permutation of f16 moves an element per cycle, as in docs/reference/npu.md."""
    elements = 4096
    permuted = dma_busy_ns(LUNAR, elements * 2, CMX, CMX, source_run=2)
    assert permuted == pytest.approx(elements / 0.971)
    assert permuted == pytest.approx(32 * dma_busy_ns(LUNAR, elements * 2, CMX, CMX))


@pytest.mark.parametrize(
    ("nbytes", "run", "padded"),
    [
        (128, None, 128),
        (100, None, 128),
        (128, 64, 128),
        (130, 65, 256),
        (150, 100, 192),
        (0, 0, 0),
    ],
)
def test_runs_are_padded_to_complete_words(nbytes: int, run: int | None, padded: int) -> None:
    assert padded_bytes(LUNAR, nbytes, run) == padded


def test_a_fill_reads_nothing() -> None:
    assert dma_busy_ns(LUNAR, MIB, None, CMX) == pytest.approx(MIB / 62.144)


@given(any_platform, st.integers(1, 1 << 24), any_space, any_space, st.integers(1, 1 << 20))
def test_shorter_runs_and_more_bytes_never_cost_less(
    platform: Platform, nbytes: int, source: Space, target: Space, run: int
) -> None:
    whole = dma_ns(platform, nbytes, source, target)
    assert dma_ns(platform, nbytes, source, target, min(run, nbytes)) >= whole
    assert dma_ns(platform, nbytes, source, target, None, min(run, nbytes)) >= whole
    assert dma_ns(platform, nbytes + 1, source, target) >= whole


# DPU


def tops(platform: Platform, act: str, weight: str) -> float:
    """Return the TOPS of a large matmul on one tile; a multiply-accumulate is two operations."""
    work = MatmulShape(1024, 1024, 1024, act, weight)
    return 2 * work.macs / dpu_ns(platform, work) / 1000


def test_one_tile_of_4000_has_7_tops_int8_and_six_have_42() -> None:
    assert tops(LUNAR, "i8", "i8") == pytest.approx(2 * 2048 * 1.7 / 1000)
    assert tops(LUNAR, "i8", "i8") == pytest.approx(7, rel=0.01)
    assert 41 < 6 * tops(LUNAR, "u8", "u8") < 45


def test_f16_has_half_and_f32_a_quarter_of_the_integer_rate() -> None:
    full = tops(LUNAR, "i8", "i8")
    assert tops(LUNAR, "f16", "f16") == pytest.approx(full / 2)
    assert tops(LUNAR, "bf16", "bf16") == pytest.approx(full / 2)
    assert tops(LUNAR, "f32", "f32") == pytest.approx(full / 4)


@pytest.mark.parametrize(
    ("act", "weight", "share"),
    [
        ("i8", "u4", 1),
        ("u8", "i4", 1),
        ("f16", "i8", 2),
        ("f16", "u4", 2),
        ("i8", "f16", 2),
        ("f32", "i8", 4),
        ("f16", "f32", 4),
        ("i8", "boolean", 2),
    ],
)
def test_the_full_rate_needs_narrow_integers_on_both_sides(
    act: str, weight: str, share: int
) -> None:
    assert tops(LUNAR, act, weight) == pytest.approx(tops(LUNAR, "i8", "i8") / share)


def test_a_single_row_is_bound_by_reading_the_weights() -> None:
    """Eight ports of 32 bytes at 971 MHz read 248.6 GB/s."""
    work = MatmulShape(1, 4096, 1024, "f16", "i8")
    assert work.read_bytes == 4096 * 1024 + 1024 * 2
    assert dpu_ns(LUNAR, work) == pytest.approx(work.read_bytes / 248.576)
    half = work._replace(weight="u4")
    assert dpu_ns(LUNAR, half) == pytest.approx(dpu_ns(LUNAR, work) / 2, rel=0.01)


def test_accumulation_reads_the_output() -> None:
    work = MatmulShape(1, 4096, 16, accumulate=True)
    assert work.read_bytes == 16 * 2 + 4096 * 16 * 2 + 4096 * 4


def test_a_batch_costs_as_much_as_its_matmuls() -> None:
    one, four = MatmulShape(64, 64, 64), MatmulShape(64, 64, 64, batch=4)
    assert (four.macs, four.read_bytes) == (4 * one.macs, 4 * one.read_bytes)
    assert dpu_ns(LUNAR, four) == pytest.approx(4 * dpu_ns(LUNAR, one))


@given(any_platform, st.tuples(*[st.integers(1, 8192)] * 3), any_type, any_type)
def test_a_matmul_takes_at_least_its_arithmetic_and_its_reads(
    platform: Platform, dims: tuple[int, int, int], act: str, weight: str
) -> None:
    work = MatmulShape(*dims, act, weight)
    time = dpu_ns(platform, work)
    assert time >= work.macs / platform.macs_per_cycle * 1000 / platform.dpu_mhz * (1 - 1e-9)
    assert time >= work.read_bytes / (platform.cmx_word_bytes * 8) * 1000 / platform.cmx_mhz


# SHAVE

MULTIPLY = "ld v0, w0\nld v1, w1\nmul v0, v0, v1\nst w2, v0\nend"
SOFTMAX = (
    "ld v0, w0\nrmax v1, v0\nsub v0, v0, v1\nexp v0, v0\nrsum v1, v0\ndiv v0, v0, v1\n"
    "st w1, v0\nend"
)


def test_a_program_is_counted_instruction_by_instruction() -> None:
    windows = [(64, "f16"), (1, "f32"), (64, "f16")]
    work = kernel_work(assemble(MULTIPLY), 12, windows)
    assert work == KernelCounts(12, ((64, 16), (1, 32), (64, 16)), (64,), 0)
    assert work.nbytes == 12 * (128 + 4 + 128)


def test_a_reduction_leaves_one_value_for_each_row() -> None:
    work = kernel_work(
        assemble("ld v0, w0\nrsum v0, v0\nsqrt v0, v0\nst w1, v0\nend"),
        1,
        [
            (100, "f16"),
            (1, "f16"),
        ],
    )
    assert work.arithmetic == (100, 1)
    assert work.reductions == 1


def test_constants_do_not_count_as_work() -> None:
    program = assemble("imm v0, 2\niota v1\nmul v0, v0, v1\nst w0, v0\nend")
    work = kernel_work(program, 1, [(32, "f16")])
    assert work == KernelCounts(1, ((32, 16),), (32,), 0)


def test_a_multiplication_costs_as_in_the_heuristic_of_npu_5() -> None:
    """1000 + bits / (min(32/3, 32/1) * 16 * 0.8 * 0.7) cycles on one SHAVE, at 1114 MHz."""
    rows, columns = 64, 1024
    work = kernel_work(assemble(MULTIPLY), rows, [(columns, "f16")] * 3)
    cycles = 1000 + rows * columns * 16 / (min(32 / 3, 32 / 1) * 16 * 0.8 * 0.7)
    one = dataclasses.replace(PANTHER, shaves_per_tile=1)
    assert shave_ns(one, work) == pytest.approx(cycles / 1.114)


def test_two_shaves_share_the_rows_of_a_call() -> None:
    work = kernel_work(assemble(MULTIPLY), 5, [(1024, "f16")] * 3)
    one = dataclasses.replace(PANTHER, shaves_per_tile=1)
    three_rows = work._replace(rows=3)
    assert shave_ns(PANTHER, work) == shave_ns(one, three_rows)


def test_a_softmax_costs_50_scalar_cycles_for_each_row() -> None:
    work = kernel_work(assemble(SOFTMAX), 2, [(64, "f16")] * 2)
    without = work._replace(reductions=0)
    assert shave_ns(PANTHER, work) - shave_ns(PANTHER, without) == pytest.approx(50 / 1.114)


def test_a_call_costs_two_microseconds_on_4000_before_any_work() -> None:
    assert shave_ns(LUNAR, KernelCounts(1, (), (), 0)) == pytest.approx(2266, abs=1)


def test_f32_costs_twice_as_much_as_f16() -> None:
    free = dataclasses.replace(LUNAR, shave_entry_cycles=0)
    narrow = kernel_work(assemble(MULTIPLY), 8, [(512, "f16")] * 3)
    wide = kernel_work(assemble(MULTIPLY), 8, [(512, "f32")] * 3)
    assert shave_ns(free, wide) == pytest.approx(2 * shave_ns(free, narrow))


def test_a_row_is_padded_to_complete_vectors() -> None:
    assert shave_ns(LUNAR, kernel_work(assemble(MULTIPLY), 2, [(33, "f16")] * 3)) == shave_ns(
        LUNAR, kernel_work(assemble(MULTIPLY), 2, [(64, "f16")] * 3)
    )


@pytest.mark.parametrize(
    ("body", "intercept", "slope"),
    [
        ("exp v0, v0", 3.41, 4.0e-5),
        ("neg v1, v0\nexp v1, v1\nimm v2, 1\nadd v1, v1, v2\ndiv v0, v0, v1", 2.05, 9.6e-5),
    ],
    ids=["exp", "swish"],
)
def test_long_calls_on_4000_are_within_a_factor_of_three_of_the_public_lines(
    body: str, intercept: float, slope: float
) -> None:
    """The bound is loose: the slopes are per element in docs/reference/npu.md, per byte in the
    other."""
    elements = 131072
    program = assemble(f"ld v0, w0\n{body}\nst w1, v0\nend")
    work = kernel_work(program, 128, [(elements // 128, "f16")] * 2)
    one = dataclasses.replace(LUNAR, shaves_per_tile=1)
    line = 1000 * (intercept + slope * elements)
    assert line / 3 < shave_ns(one, work) < line * 3


@given(
    any_platform,
    st.integers(1, 1000),
    st.lists(st.tuples(st.integers(1, 4096), st.sampled_from([8, 16, 32, 64])), max_size=6),
    st.lists(st.integers(1, 4096), max_size=12),
)
def test_more_rows_never_cost_less_than_the_entry_or_fewer_rows(
    platform: Platform,
    rows: int,
    memory: list[tuple[int, int]],
    arithmetic: list[int],
) -> None:
    work = KernelCounts(rows, tuple(memory), tuple(arithmetic), 1)
    more = work._replace(rows=rows + 1)
    entry = platform.shave_entry_cycles * 1000 / platform.cmx_mhz
    assert entry < shave_ns(platform, work) <= shave_ns(platform, more)


# Clocks


@given(
    any_platform,
    st.sampled_from(["dpu_mhz", "cmx_mhz", "ddr_mb_per_s"]),
    st.integers(1, 1 << 22),
    any_space,
    any_space,
    st.integers(1, 4096),
)
def test_doubling_a_clock_never_makes_a_task_slower(
    platform: Platform, clock: str, size: int, source: Space, target: Space, small: int
) -> None:
    faster = dataclasses.replace(platform, **{clock: 2 * getattr(platform, clock)})
    product = MatmulShape(small, 64, 64, "f16", "i8")
    kernel = KernelCounts(small, ((64, 16),), (64, 64), 1)
    before = (
        dma_ns(platform, size, source, target, min(small, size)),
        dpu_ns(platform, product),
        shave_ns(platform, kernel),
    )
    after = (
        dma_ns(faster, size, source, target, min(small, size)),
        dpu_ns(faster, product),
        shave_ns(faster, kernel),
    )
    assert all(new <= old * (1 + 1e-12) for new, old in zip(after, before, strict=True))


def test_each_clock_affects_only_its_own_engines() -> None:
    double_dpu = dataclasses.replace(LUNAR, dpu_mhz=2 * LUNAR.dpu_mhz)
    product, kernel = MatmulShape(512, 512, 512), KernelCounts(8, ((64, 16),), (64,), 0)
    assert dpu_ns(double_dpu, product) == pytest.approx(dpu_ns(LUNAR, product) / 2)
    assert shave_ns(double_dpu, kernel) == shave_ns(LUNAR, kernel)
    assert dma_ns(double_dpu, MIB, DDR, CMX) == dma_ns(LUNAR, MIB, DDR, CMX)
