"""Puts any set of engines through its paces; needs no test framework.

``check_engines(lambda: MyEngines())`` raises AssertionError with what went wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driver_layer.abi.dtypes import ELEMENT_TYPES, bf16_to_f32, f32_to_bf16
from driver_layer.abi.layout import Record
from driver_layer.abi.platforms import PLATFORMS, tile_base
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW, Access
from driver_layer.abi.shave_text import assemble
from driver_layer.abi.tasks import (
    DMA_DESCRIPTOR,
    DPU_REGISTERS,
    DPU_VARIANT,
    DmaCfg,
    DpuFlag,
    DpuWorkload,
)
from driver_layer.engines.contract import Engines
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace, MemoryKind

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """Engines with memory to work on."""

    engines: Engines
    bus: Bus

    @staticmethod
    def make(engines: Engines) -> Bench:
        """Set up CMX and an empty address space."""
        return Bench(engines, Bus(Cmx(PLATFORMS["4000"]), AddressSpace()))

    def ddr(self, content: Array) -> int:
        """Put an array into DDR; give its address."""
        allocation = self.bus.space.allocate(max(content.nbytes, 1), MemoryKind.DMA)
        allocation.write(0, np.ascontiguousarray(content).tobytes())
        return allocation.address

    def cmx(self, offset: int, content: Array, tile: int = 0) -> int:
        """Put an array into a tile's CMX; give its address."""
        address = tile_base(tile) + offset
        raw = np.frombuffer(np.ascontiguousarray(content).tobytes(), np.uint8)
        self.bus.cmx.view(address, raw.size)[:] = raw
        return address

    def read(self, address: int, kind: str, count: int) -> Array:
        """Read an array back."""
        size = np.dtype(kind).itemsize * count
        return np.frombuffer(self.bus.read(address, size).tobytes(), kind)


def one(kind: Record, **fields: Any) -> Any:
    """Make a record from fields."""
    record = np.zeros(1, kind)
    for name, value in fields.items():
        record[name] = value
    return record[0]


def check_engines(make: Callable[[], Engines]) -> None:
    """Run all checks, each on new engines.

    Raises:
        AssertionError: the engines do not compute what the contract says.
    """
    for check in CHECKS:
        check(Bench.make(make()))


def check_strided_copies_move_every_element(bench: Bench) -> None:
    """A transposition as a DMA: two strided dimensions, widths of one element."""
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
    """Twelve bytes in one piece go to three places of four."""
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
    """Multicast: one read, written to tiles 0 and 2."""
    source = bench.ddr(np.arange(8, dtype=np.uint8))
    address = tile_base(0) | tile_base(2)
    bench.engines.dma(
        one(DMA_DESCRIPTOR, src=source, dst=address, src_width=8, dst_width=8), bench.bus
    )()
    assert bench.read(tile_base(0), "u1", 8).tolist() == list(range(8))
    assert bench.read(tile_base(1), "u1", 8).tolist() == [0] * 8
    assert bench.read(tile_base(2), "u1", 8).tolist() == list(range(8))


def _gather(bench: Bench, rows: Sequence[int]) -> tuple[Any, int]:
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
        dst=target,
        dst_width=8 * len(rows),
    )
    return descriptor, target


def check_a_gather_follows_its_list(bench: Bench) -> None:
    """Rows come in the order of the list, as often as they are named."""
    descriptor, target = _gather(bench, [3, 0, 3])
    bench.engines.dma(descriptor, bench.bus)()
    rows = bench.read(target, "<f2", 12).reshape(3, 4)
    assert rows[:, 0].tolist() == [12, 0, 12]


def check_a_gather_outside_its_table_is_a_fault(bench: Bench) -> None:
    """Row numbers are data: the fault comes when the task runs."""
    for row in (-1, 5, 1 << 40):
        descriptor, _ = _gather(bench, [0, row])
        _faults(bench.engines.dma(descriptor, bench.bus))


def check_transfers_out_of_memory_are_faults(bench: Bench) -> None:
    """Nothing outside of what is mapped is read or written."""
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
        _faults(lambda descriptor=descriptor: bench.engines.dma(descriptor, bench.bus))


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


def _stored(values: npt.NDArray[np.float32], kind: str) -> Array:
    return f32_to_bf16(values) if kind == "bf16" else values.astype(ELEMENT_TYPES[kind].storage)


def _widened(values: Array, kind: str) -> npt.NDArray[np.float32]:
    return bf16_to_f32(values) if kind == "bf16" else values.astype(np.float32)


def check_products_of_all_operand_types(bench: Bench) -> None:
    """Out = alpha · act · weightᵀ, summed in f32, in two variants that share the output."""
    random = np.random.RandomState(0)
    for kinds in (("f16", "f16", "f16"), ("f32", "f16", "f32"), ("bf16", "bf16", "bf16")):
        act = _stored(random.standard_normal((2, 3, 4)).astype(np.float32), kinds[0])
        weight = _stored(random.standard_normal((2, 5, 4)).astype(np.float32), kinds[1])
        bench.cmx(0x1000, act, 1)
        bench.cmx(0x2000, weight, 1)
        variants = [
            one(DPU_VARIANT, m_end=3, n_end=2),
            one(DPU_VARIANT, m_end=3, n_begin=2, n_end=5),
        ]
        registers = _matmul(bench, kinds, alpha=0.5)
        bench.engines.dpu(registers, variants, 1, bench.bus)()
        product = np.matmul(_widened(act, kinds[0]), _widened(weight, kinds[1]).swapaxes(1, 2))
        storage = ELEMENT_TYPES[kinds[2]].storage.str
        raw = bench.read(tile_base(1) + 0x3000, storage, 30).reshape(2, 3, 5)
        error = np.abs(_widened(raw, kinds[2]) - product / 2).max()
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
        _faults(lambda r=registers: bench.engines.dpu(r, variant, 1, bench.bus))
    outside = [one(DPU_VARIANT, m_end=4, n_end=5)]
    _faults(lambda: bench.engines.dpu(_matmul(bench, kinds), outside, 1, bench.bus))


def _arguments(grid: tuple[int, int, int], *windows: dict[str, Any]) -> bytes:
    head = np.zeros(1, KERNEL_ARGS)
    head["window_count"], head["grid"] = len(windows), grid
    records = np.zeros(len(windows), WINDOW)
    for record, fields in zip(records, windows, strict=True):
        for name, value in fields.items():
            record[name] = value
    return head.tobytes() + records.tobytes()


def _window(offset: int, kind: str, cols: int, strides: tuple[int, int, int]) -> dict[str, Any]:
    element = ELEMENT_TYPES[kind]
    return {
        "address": tile_base(0) + offset,
        "type": element.code,
        "cols": cols,
        "col_stride": element.storage.itemsize,
        "strides": strides,
        "access": Access.READ | Access.WRITE,
    }


def _row(bench: Bench, text: str, x: Array, kind: str, out: str, cols: int) -> Array:
    """Run a program on one row; give the row it writes."""
    bench.cmx(0x1000, x)
    args = _arguments(
        (1, 1, 1),
        _window(0x1000, kind, len(x), (0, 0, 0)),
        _window(0x2000, out, cols, (0, 0, 0)),
    )
    bench.engines.shave(assemble(text), args, 0, bench.bus)()
    return bench.read(tile_base(0) + 0x2000, ELEMENT_TYPES[out].storage.str, cols)


_X = np.array([-2.5, -1.0, -0.25, 0.5, 1.0, 2.0, 3.5, 7.0], np.float32)

_INSTRUCTIONS: dict[str, Callable[[Array], Array]] = {
    "mov   v1, v0": lambda x: x,
    "neg   v1, v0": lambda x: -x,
    "abs   v1, v0": np.abs,
    "exp   v1, v0": np.exp,
    "sin   v1, v0": np.sin,
    "cos   v1, v0": np.cos,
    "tanh  v1, v0": np.tanh,
    "floor v1, v0": np.floor,
    "rcp   v1, v0": lambda x: 1 / x,
    "add   v1, v0, v0": lambda x: x + x,
    "sub   v1, v0, v0": lambda x: x - x,
    "mul   v1, v0, v0": lambda x: x * x,
    "div   v1, v0, v0": lambda x: x / x,
    "fma   v1, v0, v0, v0": lambda x: x * x + x,
    "rsum  v1, v0": lambda x: np.full_like(x, x.sum()),
    "rmax  v1, v0": lambda x: np.full_like(x, x.max()),
    "rmin  v1, v0": lambda x: np.full_like(x, x.min()),
    "rot   v1, v0, 3": lambda x: np.roll(x, -3),
    "iota  v1": lambda x: np.arange(len(x), dtype=np.float32),
    "imm   v1, 0.75": lambda x: np.full_like(x, 0.75),
    "abs v2, v0\n sqrt v1, v2": lambda x: np.sqrt(np.abs(x)),
    "abs v2, v0\n rsqrt v1, v2": lambda x: 1 / np.sqrt(np.abs(x)),
    "abs v2, v0\n log v1, v2": lambda x: np.log(np.abs(x)),
    "imm v2, 1\n min v1, v0, v2": lambda x: np.minimum(x, 1),
    "imm v2, 1\n max v1, v0, v2": lambda x: np.maximum(x, 1),
    "abs v3, v0\n imm v2, 1.5\n pow v1, v3, v2": lambda x: np.abs(x) ** 1.5,
    "imm v2, 1\n cmpeq v1, v0, v2": lambda x: x == 1,
    "imm v2, 1\n cmplt v1, v0, v2": lambda x: x < 1,
    "imm v2, 1\n cmple v1, v0, v2": lambda x: x <= 1,
    "imm v2, 0\n cmplt v2, v2, v0\n neg v3, v0\n sel v1, v2, v0, v3": np.abs,
}
"""Programs and what they compute of a row."""


def check_every_instruction(bench: Bench) -> None:
    """Each instruction computes what the table of opcodes says."""
    for text, expected in _INSTRUCTIONS.items():
        whole = f"ld v0, w0\n{text}\nst w1, v1\nend"
        row = _row(bench, whole, _X, "f32", "f32", len(_X))
        assert np.allclose(row, expected(_X), rtol=1e-6, atol=1e-6), text


def check_loads_and_stores_of_every_type(bench: Bench) -> None:
    """Integers lose their fraction towards zero and stay in range; truth is 0 or 1."""
    copy = "ld v0, w0\nst w1, v0\nend"
    x = np.array([0.0, 1.75, -2.75, 300.0], np.float32)
    expected = {
        "f32": x,
        "f16": x.astype(np.float16),
        "bf16": f32_to_bf16(x),
        "i64": np.array([0, 1, -2, 300]),
        "i32": np.array([0, 1, -2, 300]),
        "u8": np.array([0, 1, 0, 255]),
        "i8": np.array([0, 1, -2, 127]),
        "boolean": np.array([0, 1, 1, 1]),
    }
    for kind, values in expected.items():
        stored = _row(bench, copy, x, "f32", kind, len(x))
        assert np.array_equal(stored, values), kind
        assert np.array_equal(
            _row(bench, copy, stored, kind, "f32", len(x)), _widened(stored, kind)
        ), kind


def check_a_grid_reaches_every_row(bench: Bench) -> None:
    """Windows step by their strides; a stride of 0 repeats a row, one column repeats a value."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    scale = np.array([1, 10, 100], np.float32)
    bench.cmx(0x1000, x)
    bench.cmx(0x1800, scale)
    args = _arguments(
        (1, 2, 3),
        _window(0x1000, "f32", 4, (0, 48, 16)),
        _window(0x1800, "f32", 1, (0, 0, 4)),
        _window(0x2000, "f32", 4, (0, 48, 16)),
    )
    program = assemble("ld v0, w0\nld v1, w1\nmul v0, v0, v1\nst w2, v0\nend")
    bench.engines.shave(program, args, 0, bench.bus)()
    result = bench.read(tile_base(0) + 0x2000, "<f4", 24).reshape(2, 3, 4)
    assert np.array_equal(result, x * scale[None, :, None])


def check_windows_that_leave_their_tile_are_faults(bench: Bench) -> None:
    """Every byte of every window is in the tile's own CMX."""
    program = assemble("ld v0, w0\nst w0, v0\nend")
    good = _window(0x1000, "f32", 4, (0, 0, 16))
    for bad in (
        {"address": tile_base(1) + 0x1000},
        {"address": tile_base(0) + (2 << 20) - 8},
        {"strides": (0, 0, 1 << 21)},
        {"cols": 1 << 30},
        {"type": 99},
        {"cols": 0},
    ):
        args = _arguments((1, 1, 2), good | bad)
        _faults(lambda a=args: bench.engines.shave(program, a, 0, bench.bus))


def _faults(action: Callable[[], object]) -> None:
    try:
        action()
    except DeviceFault:
        return
    raise AssertionError("no DeviceFault was raised")


CHECKS: Sequence[Callable[[Bench], None]] = tuple(
    check
    for name, check in list(globals().items())
    if name.startswith("check_") and name != "check_engines"
)
"""All checks; test frameworks may run them one by one."""
