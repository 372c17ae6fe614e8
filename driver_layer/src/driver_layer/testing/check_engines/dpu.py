"""Checks of DPU workloads."""

from __future__ import annotations

from typing import Any

import numpy as np

from driver_layer.abi.dtypes import ELEMENT_TYPES, DType, pack_4bit
from driver_layer.abi.platforms import tile_base
from driver_layer.abi.tasks import (
    DPU_REGISTERS,
    DPU_VARIANT,
    DpuFlag,
    DpuWorkload,
)
from driver_layer.testing.check_engines.bench import Bench, faults, one, stored, widened


def _matmul(bench: Bench, kinds: tuple[str, str, str], **changes: Any) -> Any:
    act, weight, out = (ELEMENT_TYPES[kind] for kind in kinds)
    sizes = [kind.storage.itemsize for kind in (act, weight, out)]
    fields = {
        "workload": DpuWorkload.MATMUL,
        "act_type": act.code,
        "weight_type": weight.code,
        "out_type": out.code,
        "alpha": 1.0,
        "act_address": tile_base(1) + 0x1000,
        "weight_address": tile_base(1) + 0x2000,
        "out_address": tile_base(1) + 0x3000,
        "batch": 2,
        "m": 3,
        "n": 5,
        "k": 4,
        "act_strides": (12 * sizes[0], 4 * sizes[0], sizes[0]),
        "weight_strides": (20 * sizes[1], 4 * sizes[1], sizes[1]),
        "out_strides": (15 * sizes[2], 5 * sizes[2], sizes[2]),
    }
    return one(DPU_REGISTERS, **(fields | changes))


def check_matmuls_of_all_operand_types(bench: Bench) -> None:
    """Check out = alpha · act · weightᵀ, summed in f32, in two variants that share the output."""
    random = np.random.RandomState(0)
    for kinds in (("f16", "f16", "f16"), ("f32", "f16", "f32"), ("bf16", "bf16", "bf16")):
        act = stored(random.standard_normal((2, 3, 4)).astype(np.float32), kinds[0])
        weight = stored(random.standard_normal((2, 5, 4)).astype(np.float32), kinds[1])
        bench.cmx(0x1000, act, 1)
        bench.cmx(0x2000, weight, 1)
        variants = [
            one(DPU_VARIANT, m_end=3, n_end=2),
            one(DPU_VARIANT, m_end=3, n_begin=2, n_end=5),
        ]
        registers = _matmul(bench, kinds, alpha=0.5)
        bench.engines.dpu(registers, variants, 1, bench.bus)()
        product = np.matmul(widened(act, kinds[0]), widened(weight, kinds[1]).swapaxes(1, 2))
        storage = ELEMENT_TYPES[kinds[2]].storage.str
        raw = bench.read(tile_base(1) + 0x3000, storage, 30).reshape(2, 3, 5)
        error = np.abs(widened(raw, kinds[2]) - product / 2).max()
        assert error < {"f32": 1e-5, "f16": 1e-2, "bf16": 1e-1}[kinds[2]], (kinds, error)


def check_accumulation_adds_to_the_output(bench: Bench) -> None:
    """Check that two further runs with ACCUMULATE result in three times the product."""
    bench.cmx(0x1000, np.ones((2, 3, 4), np.float32), 1)
    bench.cmx(0x2000, np.ones((2, 5, 4), np.float32), 1)
    variant = [one(DPU_VARIANT, m_end=3, n_end=5)]
    kinds = ("f32", "f32", "f32")
    bench.engines.dpu(_matmul(bench, kinds), variant, 1, bench.bus)()
    more = _matmul(bench, kinds, flags=DpuFlag.ACCUMULATE)
    run = bench.engines.dpu(more, variant, 1, bench.bus)
    run()
    run()
    assert np.all(bench.read(tile_base(1) + 0x3000, "<f4", 30) == 12)


def _tables(bench: Bench, random: np.random.RandomState, zeros: bool) -> dict[str, Any]:
    """Copy scales and zero points [5, 2] of groups of 2 to CMX; return their registers."""
    bench.cmx(0x4000, random.uniform(0.1, 1, (5, 2)).astype(np.float16), 1)
    bench.cmx(0x5000, random.randint(0, 8, (5, 2)).astype(np.uint8), 1)
    fields: dict[str, Any] = {
        "group": 2,
        "scale_type": DType.FP16,
        "scale_address": tile_base(1) + 0x4000,
        "scale_strides": (4, 2),
    }
    if zeros:
        fields |= {
            "zero_type": DType.U8,
            "zero_address": tile_base(1) + 0x5000,
            "zero_strides": (2, 1),
        }
    return fields


def check_integer_weights_are_scaled_per_group(bench: Bench) -> None:
    """Check (stored - zero) · scale for weights of 8 and 4 bits, also without zero points."""
    random = np.random.RandomState(1)
    act = random.standard_normal((2, 3, 4)).astype(np.float32)
    bench.cmx(0x1000, act, 1)
    for kind, low, high in (("i8", -128, 128), ("u8", 0, 256), ("i4", -8, 8), ("u4", 0, 16)):
        weight = random.randint(low, high, (2, 5, 4))
        packed = kind in ("i4", "u4")
        raw = pack_4bit(weight) if packed else weight.astype(ELEMENT_TYPES[kind].storage)
        bench.cmx(0x2000, raw, 1)
        row = 2 if packed else 4
        for zeros in (False, True):
            fields = _tables(bench, random, zeros) | {"weight_strides": (5 * row, row, 1)}
            registers = _matmul(bench, ("f32", kind, "f32"), **fields)
            bench.engines.dpu(registers, [one(DPU_VARIANT, m_end=3, n_end=5)], 1, bench.bus)()
            scale = bench.read(tile_base(1) + 0x4000, "<f2", 10).reshape(5, 2).astype(np.float32)
            zero = bench.read(tile_base(1) + 0x5000, "u1", 10).reshape(5, 2).astype(np.float32)
            centred = weight - np.repeat(zero, 2, -1) if zeros else weight
            values = (centred * np.repeat(scale, 2, -1)).astype(np.float32)
            found = bench.read(tile_base(1) + 0x3000, "<f4", 30).reshape(2, 3, 5)
            expected = np.matmul(act, values.swapaxes(1, 2))
            assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max(), (kind, zeros)


def check_weights_of_8_bit_floats_are_scaled_per_group(bench: Bench) -> None:
    """Check weights in f8, with and without scales."""
    random = np.random.RandomState(2)
    act = random.standard_normal((2, 3, 4)).astype(np.float32)
    bench.cmx(0x1000, act, 1)
    for kind in ("f8e4m3", "f8e5m2"):
        weight = stored(random.standard_normal((2, 5, 4)).astype(np.float32), kind)
        bench.cmx(0x2000, weight, 1)
        for scaled in (False, True):
            fields = _tables(bench, random, zeros=False) if scaled else {}
            registers = _matmul(bench, ("f32", kind, "f32"), **fields)
            bench.engines.dpu(registers, [one(DPU_VARIANT, m_end=3, n_end=5)], 1, bench.bus)()
            values = widened(weight, kind)
            if scaled:
                table = bench.read(tile_base(1) + 0x4000, "<f2", 10).reshape(5, 2)
                values = values * np.repeat(table.astype(np.float32), 2, -1)
            expected = np.matmul(act, values.swapaxes(1, 2))
            found = bench.read(tile_base(1) + 0x3000, "<f4", 30).reshape(2, 3, 5)
            assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max(), (kind, scaled)


def check_integer_activations_are_summed_exactly(bench: Bench) -> None:
    """Check sums beyond the exact range of f32; each row and each column has a scale."""
    k = 2048
    act = np.full((1, 3, k), 127, np.int8)
    act[0, 1, 0] = 126
    weight = np.full((1, 2, k), 127, np.int8)
    bench.cmx(0x1000, act, 1)
    bench.cmx(0x4000, weight, 1)
    bench.cmx(0x8000, np.array([2, 3], np.float32), 1)
    bench.cmx(0x8100, np.array([1, 0.5, 4], np.float32), 1)
    registers = _matmul(
        bench,
        ("i8", "i8", "f32"),
        batch=1,
        n=2,
        k=k,
        act_strides=(3 * k, k, 1),
        weight_address=tile_base(1) + 0x4000,
        weight_strides=(2 * k, k, 1),
        out_address=tile_base(1) + 0x9000,
        out_strides=(24, 8, 4),
        scale_type=DType.FP32,
        scale_address=tile_base(1) + 0x8000,
        scale_strides=(4, 4),
        act_scale_address=tile_base(1) + 0x8100,
        act_scale_stride=4,
    )
    bench.engines.dpu(registers, [one(DPU_VARIANT, m_end=3, n_end=2)], 1, bench.bus)()
    sums = np.array([127 * 127 * k, 127 * 127 * k - 127, 127 * 127 * k], np.float32)
    expected = sums[:, None] * np.array([2, 3], np.float32) * np.array([[1], [0.5], [4]], "<f4")
    found = bench.read(tile_base(1) + 0x9000, "<f4", 6).reshape(3, 2)
    assert np.array_equal(found, expected)


def check_the_zero_point_of_activations_is_subtracted(bench: Bench) -> None:
    """Check alpha · sum of (act - zero) · (weight - zero), with one zero point for activations."""
    random = np.random.RandomState(2)
    act = random.randint(0, 256, (2, 3, 4))
    weight = random.randint(0, 256, (2, 5, 4))
    bench.cmx(0x1000, act.astype(np.uint8), 1)
    bench.cmx(0x2000, weight.astype(np.uint8), 1)
    bench.cmx(0x5000, np.array([1, 2, 3, 4, 5], np.uint8), 1)
    registers = _matmul(
        bench,
        ("u8", "u8", "f32"),
        alpha=0.5,
        act_zero=131,
        zero_type=DType.U8,
        zero_address=tile_base(1) + 0x5000,
        zero_strides=(1, 1),
    )
    bench.engines.dpu(registers, [one(DPU_VARIANT, m_end=3, n_end=5)], 1, bench.bus)()
    centred = weight - np.array([1, 2, 3, 4, 5])[:, None]
    expected = np.matmul(act - 131, centred.swapaxes(1, 2)) / 2
    found = bench.read(tile_base(1) + 0x3000, "<f4", 30).reshape(2, 3, 5)
    assert np.array_equal(found, expected.astype(np.float32))


def check_workloads_that_leave_their_tile_are_faults(bench: Bench) -> None:
    """Check faults for operands outside the tile's CMX, and for invalid sizes and types.

    An address beyond CMX must not wrap to the tile that its lower bits select.
    """
    variant = [one(DPU_VARIANT, m_end=3, n_end=5)]
    kinds = ("f16", "f16", "f16")
    for bad in (
        {"act_address": tile_base(0)},
        {"out_address": 0x80000000 | tile_base(1)},
        {"act_scale_address": 0x80000000 | tile_base(1)},
        {"out_strides": (30, 6, 2)},
        {"out_strides": (0, 0, 0)},
        {"batch": 512, "m": 1024, "n": 1, "k": 16, "act_strides": 0, "out_strides": (2048, 2, 2)},
        {"out_address": tile_base(1) + (2 << 20) - 4},
        {"weight_strides": (1 << 21, 8, 2)},
        {"k": 0},
        {"m": 9000},
        {"act_type": 99},
        {"workload": 7},
        {"flags": DpuFlag.ACCUMULATE},
        {"weight_type": DType.I64},
        {"scale_type": DType.FP16, "scale_address": tile_base(1)},
        {"act_type": DType.I8},
        {"act_zero": 1},
    ):
        registers = _matmul(bench, kinds, **bad)
        faults(lambda r=registers: bench.engines.dpu(r, variant, 1, bench.bus))
    outside = [one(DPU_VARIANT, m_end=4, n_end=5)]
    faults(lambda: bench.engines.dpu(_matmul(bench, kinds), outside, 1, bench.bus))
