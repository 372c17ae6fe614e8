"""What the DPU computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from driver_layer.abi.dtypes import ELEMENT_TYPES
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


def check_products_of_all_operand_types(bench: Bench) -> None:
    """Out = alpha · act · weightᵀ, summed in f32, in two variants that share the output."""
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
    """Two runs with ACCUMULATE give three times one product."""
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


def check_workloads_that_leave_their_tile_are_faults(bench: Bench) -> None:
    """Operands lie in the tile's own CMX, whole; sizes and types are known ones."""
    variant = [one(DPU_VARIANT, m_end=3, n_end=5)]
    kinds = ("f16", "f16", "f16")
    for bad in (
        {"act_address": tile_base(0)},
        {"out_address": tile_base(1) + (2 << 20) - 4},
        {"weight_strides": (1 << 21, 8, 2)},
        {"k": 0},
        {"m": 9000},
        {"act_type": 99},
        {"workload": 7},
        {"flags": DpuFlag.ACCUMULATE},
    ):
        registers = _matmul(bench, kinds, **bad)
        faults(lambda r=registers: bench.engines.dpu(r, variant, 1, bench.bus))
    outside = [one(DPU_VARIANT, m_end=4, n_end=5)]
    faults(lambda: bench.engines.dpu(_matmul(bench, kinds), outside, 1, bench.bus))
