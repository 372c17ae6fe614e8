"""Damaged records fault in both engines, with the same task, address and text.

The tables walk all fields that say where a task reads and writes; a record with a field that is in
no table fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from driver_layer.abi.dtypes import DType
from driver_layer.abi.layout import Record
from driver_layer.abi.platforms import tile_base
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW, Access
from driver_layer.abi.shave_text import assemble
from driver_layer.abi.tasks import DMA_DESCRIPTOR, DPU_REGISTERS, DPU_VARIANT, DpuWorkload
from driver_layer.engines.executor import Executor
from driver_layer.engines.native import NativeExecutor
from driver_layer.engines.native.lower import shave as lower_shave
from driver_layer.engines.reference import ReferenceEngines
from driver_layer.engines.reference import shave as reference_shave
from driver_layer.engines.task_by_task import TaskByTask
from driver_layer.errors import DeviceFault, OutOfMemory
from driver_layer.testing.check_engines import Bench, one
from driver_layer.testing.check_engines.one_task import OneTask

TILE = 1
BASE = tile_base(TILE)
LAST = 2**32 - 1
OUTSIDE = (
    tile_base(0),  # another tile
    BASE + (2 << 20) - 1,  # the last byte of the tile
    0x80000000 | BASE + 0x3000,  # beyond CMX, with the tile's bit
    0xA0000000,  # the management core's range
    0x40000000,  # no tile
    tile_base(0) | BASE,  # two tiles
    4,
)
"""Addresses at which a tile's task has no operand."""

SIZES = (0, LAST)
FAR = (1 << 21, LAST)
"""Strides that leave a tile."""

MATMUL: dict[str, Any] = {
    "workload": DpuWorkload.MATMUL,
    "act_type": DType.I8,
    "weight_type": DType.U4,
    "out_type": DType.FP32,
    "scale_type": DType.FP16,
    "zero_type": DType.U8,
    "alpha": 1.0,
    **{f"{name}_address": BASE + 0x1000 * at for at, name in enumerate(("act", "weight", "out"))},
    "batch": 2,
    "m": 3,
    "n": 5,
    "k": 8,
    "act_strides": (24, 8, 1),
    "weight_strides": (20, 4, 1),
    "out_strides": (60, 20, 4),
    "scale_address": BASE + 0x4000,
    "zero_address": BASE + 0x5000,
    "act_scale_address": BASE + 0x6000,
    "scale_strides": (2, 2),
    "zero_strides": (1, 1),
    "act_scale_stride": 4,
}
OF_REGISTERS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys([name for name in MATMUL if name.endswith("_address")], OUTSIDE),
    **dict.fromkeys(["batch", "m", "n", "k"], SIZES),
    **dict.fromkeys([name for name in MATMUL if name.endswith("_type")], (77,)),
    **dict.fromkeys(["act_strides", "weight_strides"], FAR),
    "out_strides": (0, 2, *FAR),
    **dict.fromkeys(["scale_strides", "zero_strides", "act_scale_stride"], FAR),
    "workload": (0, 9),
    "flags": (),
    "act_zero": (),
    "alpha": (),
    "group": (1,),
}

WINDOWED: dict[str, Any] = {
    "address": BASE + 0x1000,
    "cols": 4,
    "col_stride": 4,
    "strides": (0, 0, 16),
    "type": DType.FP32,
    "access": Access.READ | Access.WRITE,
}
OF_WINDOW: dict[str, tuple[int, ...]] = {
    "address": OUTSIDE,
    "cols": (*SIZES, 1 << 30),
    "col_stride": FAR,
    "strides": FAR,
    "type": (77,),
    "access": (),
}

TRANSFER_DIMS = range(1, 6)
OF_TRANSFER: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(["src", "dst"], (0, BASE + (2 << 20) - 1, 0x40000000, 1 << 41)),
    **dict.fromkeys(["src_width", "dst_width"], (0, 3, LAST)),
    **{f"{side}_dim{n}": (0xFFFF,) for side in ("src", "dst") for n in TRANSFER_DIMS},
    **{f"{side}_stride{n}": (LAST,) for side in ("src", "dst") for n in TRANSFER_DIMS},
    "cfg": (6, 7),
}
NOT_OF_PLACES = {
    *("link_address", "src_axi", "dst_axi", "memset_data", "src_list", "dst_list"),
    *("producer_lo", "producer_hi", "consumer_lo", "consumer_hi"),
}
"""Fields of a copy that do not say where it reads and writes."""


def engines() -> dict[str, Executor]:
    return {"reference": TaskByTask(ReferenceEngines()), "native": NativeExecutor()}


@pytest.fixture(scope="module")
def benches() -> dict[str, Bench]:
    """Benches of both engines, with the same memory."""
    return {name: Bench.make(OneTask(each)) for name, each in engines().items()}


def damaged(
    kind: Record, good: dict[str, Any], table: dict[str, tuple[int, ...]]
) -> Iterator[tuple[str, int, Any]]:
    """Yield each field, each of its bad values, and the record with it."""
    for field, values in table.items():
        for value in values:
            bad = np.full(kind[field].shape, value) if kind[field].shape else value
            yield field, value, one(kind, **(good | {field: bad}))


def fault(bench: Bench, name: str, *arguments: Any) -> DeviceFault:
    with pytest.raises(DeviceFault) as caught:
        getattr(bench.engines, name)(*arguments, bench.bus)()
    return caught.value


def test_a_damaged_workload_is_the_same_fault_in_both_engines(benches: dict[str, Bench]) -> None:
    assert OF_REGISTERS.keys() == set(DPU_REGISTERS.names or ())
    variants = [one(DPU_VARIANT, m_end=3, n_end=5)]
    for field, value, bad in damaged(DPU_REGISTERS, MATMUL, OF_REGISTERS):
        found = [fault(each, "dpu", bad, variants, TILE) for each in benches.values()]
        assert str(found[0]) == str(found[1]), field
        assert (found[0].engine, found[0].task) == ("task", 0)
        if field.endswith("_address"):
            assert found[0].address == value


def test_a_damaged_window_is_the_same_fault_in_both_engines(benches: dict[str, Bench]) -> None:
    assert OF_WINDOW.keys() == set(WINDOW.names or ())
    program = assemble("ld v0, w0\nst w0, v0\nend")
    head = one(KERNEL_ARGS, window_count=1, grid=(1, 1, 2)).tobytes()
    for field, value, bad in damaged(WINDOW, WINDOWED, OF_WINDOW):
        args = head + bad.tobytes()
        found = [fault(each, "shave", program, args, TILE) for each in benches.values()]
        assert str(found[0]) == str(found[1]), field
        assert (found[0].engine, found[0].task) == ("task", 0)
        if field == "address":
            assert found[0].address == value


def test_a_damaged_transfer_is_the_same_fault_in_both_engines(benches: dict[str, Bench]) -> None:
    assert OF_TRANSFER.keys() | NOT_OF_PLACES == set(DMA_DESCRIPTOR.names or ())
    for field, _, bad in damaged(
        DMA_DESCRIPTOR,
        {"cfg": 5, "src": BASE, "dst": tile_base(0), "src_width": 16, "dst_width": 16}
        | {f"{side}_dim{n}": n < 3 for side in ("src", "dst") for n in TRANSFER_DIMS}
        | {f"{side}_stride{n}": 16 << n for side in ("src", "dst") for n in TRANSFER_DIMS},
        {field: values for field, values in OF_TRANSFER.items() if not _unused_stride(field)},
    ):
        found = [fault(each, "dma", bad) for each in benches.values()]
        assert str(found[0]) == str(found[1]), field
        assert (found[0].engine, found[0].task) == ("task", 0)


def test_a_task_that_the_reference_engine_runs_for_the_native_one_is_out_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error of the run is raised, not that of a second one, which may find memory."""
    monkeypatch.setattr(lower_shave, "MOST_KERNELS", 0)
    bench = Bench.make(OneTask(NativeExecutor()))
    args = (
        one(KERNEL_ARGS, window_count=1, grid=(1, 1, 2)).tobytes()
        + one(WINDOW, **WINDOWED).tobytes()
    )
    run = bench.engines.shave(assemble("ld v0, w0\nst w0, v0\nend"), args, TILE, bench.bus)
    errors = iter([MemoryError()])
    real = reference_shave.narrowed

    def once(*given: Any) -> Any:
        for error in errors:
            raise error
        return real(*given)

    monkeypatch.setattr(reference_shave, "narrowed", once)
    with pytest.raises(OutOfMemory, match=r"task, task 0: the host has no memory left$"):
        run()
    run()


def _unused_stride(field: str) -> bool:
    """Return whether a stride is that of a dimension with one element."""
    return "stride" in field and int(field[-1]) >= 3
