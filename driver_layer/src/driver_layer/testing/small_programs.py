"""Small programs on small memory, for tests of any executor; independent of test frameworks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driver_layer.abi import tasks
from driver_layer.abi.dtypes import DType
from driver_layer.abi.layout import RecordArray, filled
from driver_layer.abi.platforms import PLATFORMS, tile_base
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW, Access
from driver_layer.abi.shave_text import assemble
from driver_layer.abi.tasks import DmaCfg, DpuFlag, DpuWorkload
from driver_layer.engines.executor import Executor, Spans
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace, MemoryKind
from driver_layer.npu.order import Order
from driver_layer.npu.program import DmaWork, DpuWork, Program, ShaveWork
from driver_layer.testing.check_engines.one_task import free_queue

BYTES = 512
"""Size of each memory that programs use: small, so that their accesses overlap."""

CMX = 0x20000
"""Offset in a tile of the memory that programs use."""

NUMBERS = BYTES
"""Offset from ``CMX`` of constant f16 numbers."""


@dataclass(frozen=True)
class Side:
    """A strided region of a memory: "ddr", "fixed" (never written), "cmx0" or "cmx1"."""

    memory: str
    offset: int
    width: int
    dims: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Copy:
    """DMA task: a copy from one region to another."""

    src: Side
    dst: Side


@dataclass(frozen=True)
class Fill:
    """DMA task: a fill of a region with one byte."""

    dst: Side
    value: int


@dataclass(frozen=True)
class Add:
    """SHAVE task: u8 rows plus one, from one region of a tile to another."""

    tile: int
    src: int
    dst: int
    rows: int
    cols: int
    src_pitch: int
    dst_pitch: int


@dataclass(frozen=True)
class Matmul:
    """DPU task: exact matmul of i8 by i8 to f32; rows are contiguous, or ``depth`` bytes apart."""

    tile: int
    act: int
    weight: int
    out: int
    m: int
    n: int
    k: int
    pitch: int
    depth: int = 0
    accumulate: bool = False


@dataclass(frozen=True)
class Mix:
    """DPU task: exact matmul of small integers in f16 by i8, contiguous along n, with zero points.

    The f16 numbers are the machine's, at ``NUMBERS``; ``group`` elements of k share a zero point;
    the output is f16 or f32.
    """

    tile: int
    weight: int
    zero: int
    out: int
    m: int
    n: int
    k: int
    pitch: int
    half: bool
    group: int


Step = Copy | Fill | Add | Matmul | Mix
"""A task of a small program."""


class Machine:
    """Memory, and programs that use it.

    Args:
        before: bytes of DDR before those that programs use.
    """

    def __init__(self, before: int = 0) -> None:
        random = np.random.default_rng(0)
        self.bus = Bus(Cmx(PLATFORMS["4000"]), AddressSpace())
        self._before = before
        self.ddr = self.bus.space.allocate(before + BYTES, MemoryKind.DMA)
        self.fixed = self.bus.space.allocate(2 * before + BYTES, MemoryKind.DMA, writable=False)
        for memory, begin in ((self.ddr, before), (self.fixed, 2 * before)):
            memory.write(begin, random.integers(0, 256, BYTES, np.uint8).tobytes())
        for tile in (0, 1):
            memory = self.bus.cmx.tiles[tile][CMX : CMX + 2 * BYTES]
            memory[:BYTES] = random.integers(0, 256, BYTES, np.uint8)
            memory[NUMBERS:].view("<f2")[:] = random.integers(-8, 9, BYTES // 2)

    def run(self, made: list[Step], executor: Executor) -> bytes:
        """Run steps, with the result of sequential execution; return ``contents``."""
        executor.prepare(*self.program(made), self.bus)()
        return self.contents

    @property
    def contents(self) -> bytes:
        """Content of the part of DDR that programs use."""
        return self.ddr.data[self._before :].tobytes()

    def program(self, made: list[Step]) -> tuple[Program, Order]:
        """Return steps as tasks in sequential order."""
        works = [self._work(step) for step in made]
        queues = tuple(free_queue(f"q{i}", work, 1) for i, work in enumerate(works))
        program = Program(queues, np.zeros(0, tasks.BARRIER_CONFIG), ())
        return program, Order(list(range(len(works))), [0] * len(works))

    def spans(self) -> Spans:
        """Return the host addresses of all memory that programs access."""
        tiles = self.bus.cmx.tiles[:2]
        found = [(tile.ctypes.data, tile.size, tile.size, True) for tile in tiles]
        for memory, begin in ((self.ddr, self._before), (self.fixed, 2 * self._before)):
            room = memory.size - begin
            found.append((memory.data.ctypes.data + begin, BYTES, room, memory.writable))
        begins, sizes, rooms, writable = (np.array(column) for column in zip(*found, strict=True))
        return Spans(begins, sizes, rooms, writable)

    def _work(self, step: Step) -> DmaWork | DpuWork | ShaveWork:
        if isinstance(step, Copy | Fill):
            return DmaWork(self._descriptor(step))
        if isinstance(step, Mix):
            return _mix(step)
        return _sum(step) if isinstance(step, Add) else product(step)

    def _descriptor(self, step: Copy | Fill) -> RecordArray:
        record = np.zeros(1, tasks.DMA_DESCRIPTOR)
        record["cfg"] = 1
        named = {"dst": step.dst}
        if isinstance(step, Copy):
            named["src"] = step.src
        else:
            record["cfg"] |= int(DmaCfg.MEMSET_EN)
            record["memset_data"] = step.value
        for name, side in named.items():
            record[name] = self._address(side.memory) + side.offset
            record[f"{name}_width"] = side.width
            for number, (length, stride) in enumerate(reversed(side.dims), 1):
                record[f"{name}_dim{number}"] = length - 1
                record[f"{name}_stride{number}"] = stride
        return record

    def _address(self, memory: str) -> int:
        if memory.startswith("cmx"):
            return tile_base(int(memory[3:])) + CMX
        if memory == "ddr":
            return self.ddr.address + self._before
        return self.fixed.address + 2 * self._before


ADD_ONE = assemble("ld v0, w0\nimm v1, 1\nadd v0, v0, v1\nst w1, v0\nend")


def _sum(step: Add) -> ShaveWork:
    head = filled(KERNEL_ARGS, window_count=2, grid=(1, 1, step.rows))
    windows = [
        filled(
            WINDOW,
            address=tile_base(step.tile) + CMX + offset,
            cols=step.cols,
            col_stride=1,
            strides=(0, 0, pitch),
            type=DType.U8,
            access=Access.READ | Access.WRITE,
        )
        for offset, pitch in ((step.src, step.src_pitch), (step.dst, step.dst_pitch))
    ]
    args = b"".join(part.tobytes() for part in (head, *windows))
    return ShaveWork(step.tile, [ADD_ONE], [0], [args])


def product(step: Matmul) -> DpuWork:
    """Return the workload of a matmul."""
    depth = step.depth or step.k
    fields: dict[str, Any] = {
        "act_type": DType.I8,
        "out_type": DType.FP32,
        "flags": DpuFlag.ACCUMULATE * step.accumulate,
        "act_address": tile_base(step.tile) + CMX + step.act,
        "act_strides": (0, depth, 1),
        "weight_strides": (0, depth, 1),
        "out_strides": (0, step.pitch, 4),
    }
    return _dpu(step, fields)


def _mix(step: Mix) -> DpuWork:
    base = tile_base(step.tile) + CMX
    fields: dict[str, Any] = {
        "act_type": DType.FP16,
        "out_type": DType.FP16 if step.half else DType.FP32,
        "zero_type": DType.I8,
        "act_address": base + NUMBERS,
        "zero_address": base + step.zero,
        "act_strides": (0, 2 * step.k, 2),
        "weight_strides": (0, 1, step.n),
        "out_strides": (0, step.pitch, 2 if step.half else 4),
        "zero_strides": (0, 1),
        "group": step.group,
    }
    return _dpu(step, fields)


def _dpu(step: Matmul | Mix, different: dict[str, Any]) -> DpuWork:
    base = tile_base(step.tile) + CMX
    fields: dict[str, Any] = different | {
        "workload": DpuWorkload.MATMUL,
        "weight_type": DType.I8,
        "alpha": 1.0,
        "weight_address": base + step.weight,
        "out_address": base + step.out,
        "batch": 1,
        "m": step.m,
        "n": step.n,
        "k": step.k,
    }
    variant = filled(tasks.DPU_VARIANT, m_end=step.m, n_end=step.n)
    return DpuWork(step.tile, filled(tasks.DPU_REGISTERS, **fields), variant, [0, 1])
