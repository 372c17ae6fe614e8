"""Costs of tasks from their descriptors, computed by engines that return prices.

Source: the formulas of ``abi.cost``; the layout of descriptors in ``abi.tasks``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from driver_layer.abi.cost import MatmulShape, Space, dpu_ns, kernel_work, shave_ns
from driver_layer.abi.cost.dma import dma_busy_ns, dma_latency_ns, padded_bytes
from driver_layer.abi.dtypes import BY_CODE, ElementType
from driver_layer.abi.platforms import Platform
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW, Instruction
from driver_layer.abi.tasks import DmaCfg, DpuFlag, DpuWorkload
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.program import Program, prepare_queue

_STRIDED_DIMS = 5
_ADDRESS = (1 << 48) - 1


class Engine(Enum):
    """Unit that executes a task."""

    DMA = "DMA"
    DPU = "DPU"
    SHAVE = "SHAVE"


@dataclass(frozen=True, slots=True)
class Price:
    """Cost of a task without contention."""

    engine: Engine
    tile: int | None
    """Tile that the task runs on; None for a transfer."""
    nbytes: int
    """Bytes that a transfer moves, or that DPU and SHAVE read and write in CMX."""
    ddr_bytes: int = 0
    """Bytes that occupy DDR bandwidth, with the padding of runs shorter than a word."""
    macs: int = 0
    """Number of multiply-accumulates."""
    latency_ns: float = 0.0
    """Time before the task uses any bandwidth."""
    busy_ns: float = 0.0
    """Time after the latency, at the full bandwidth that the task can use."""

    @property
    def alone_ns(self) -> float:
        """Total duration without contention."""
        return self.latency_ns + self.busy_ns


def price(program: Program, platform: Platform, bus: Bus) -> list[list[Price]]:
    """Compute the prices of the tasks of each queue.

    Raises:
        DeviceFault: a task is malformed; the fault names the task.
    """
    pricer = Pricer(platform)
    return [prepare_queue(queue, pricer, bus) for queue in program.queues]


class Pricer:
    """Implementation of ``engines.contract.Engines`` that returns prices.

    Args:
        platform: the device that the prices are for.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    def dma(self, descriptor: Any, bus: Bus) -> Price:
        """Return the price of a transfer; buffers that are not in CMX are in DDR.

        Raises:
            DeviceFault: the descriptor is malformed.
        """
        del bus
        platform, cfg = self._platform, int(descriptor["cfg"])
        nbytes, target_run = _side(descriptor, "dst")
        target = _space(descriptor["dst"])
        source, source_run = None, None
        if not cfg & DmaCfg.MEMSET_EN:
            source = _space(descriptor["src"])
            source_run = int(descriptor["src_width"])  # a row of a gather
            if cfg & DmaCfg.SRC_LIST == 0:
                _, source_run = _side(descriptor, "src")
        in_ddr = [
            padded_bytes(platform, nbytes, run)
            for space, run in ((source, source_run), (target, target_run))
            if space is Space.DDR
        ]
        return Price(
            engine=Engine.DMA,
            tile=None,
            nbytes=nbytes,
            ddr_bytes=sum(in_ddr),
            latency_ns=dma_latency_ns(platform, source, target),
            busy_ns=dma_busy_ns(platform, nbytes, source, target, source_run, target_run),
        )

    def dpu(self, registers: Any, variants: Sequence[Any], tile: int, bus: Bus) -> Price:
        """Return the price of an invariant: its variants run one after the other.

        Raises:
            DeviceFault: the workload or a type is unknown, or a variant leaves the output.
        """
        del bus
        parts = [_part(registers, variant) for variant in variants]
        out_bits = _type(registers["out_type"]).bits
        written = sum(part.batch * part.m * part.n for part in parts) * out_bits // 8
        return Price(
            engine=Engine.DPU,
            tile=tile,
            nbytes=sum(part.read_bytes for part in parts) + written,
            macs=sum(part.macs for part in parts),
            busy_ns=math.fsum(dpu_ns(self._platform, part) for part in parts),
        )

    def shave(self, program: Sequence[Instruction], args: bytes, tile: int, bus: Bus) -> Price:
        """Return the price of a call of a verified program.

        Raises:
            DeviceFault: a window has an unknown type.
        """
        del bus
        head = np.frombuffer(args, KERNEL_ARGS, 1)[0]
        records = np.frombuffer(args, WINDOW, int(head["window_count"]), KERNEL_ARGS.itemsize)
        windows = [
            (int(one["cols"]) if one["col_stride"] else 1, _type(one["type"]).name)
            for one in records
        ]
        work = kernel_work(program, math.prod(head["grid"].tolist()), windows)
        return Price(
            engine=Engine.SHAVE,
            tile=tile,
            nbytes=work.nbytes,
            busy_ns=shave_ns(self._platform, work),
        )


def _space(address: Any) -> Space:
    return Space.CMX if Cmx.contains(int(address) & _ADDRESS) else Space.DDR


def _side(descriptor: Any, side: str) -> tuple[int, int]:
    """Return the bytes of one side of a transfer, and the bytes of its contiguous runs."""
    used = int(descriptor["cfg"]) & DmaCfg.NUM_DIM
    if used > _STRIDED_DIMS:
        raise DeviceFault(f"a transfer has {used + 1} dimensions; the limit is 6")
    run = size = int(descriptor[f"{side}_width"])
    for number in range(1, used + 1):
        count = int(descriptor[f"{side}_dim{number}"]) + 1
        if run == size and (count == 1 or int(descriptor[f"{side}_stride{number}"]) == size):
            run *= count
        size *= count
    return size, run


def _type(code: Any) -> ElementType:
    found = BY_CODE.get(int(code))
    if found is None:
        raise DeviceFault(f"unknown element type {code}")
    return found


def _part(registers: Any, variant: Any) -> MatmulShape:
    """Return the work of one variant."""
    if registers["workload"] != DpuWorkload.MATMUL:
        raise DeviceFault(f"unknown DPU workload {registers['workload']}")
    m = int(variant["m_end"]) - int(variant["m_begin"])
    n = int(variant["n_end"]) - int(variant["n_begin"])
    if not (0 < m <= int(registers["m"]) and 0 < n <= int(registers["n"])):
        raise DeviceFault(
            f"a variant of {m} x {n} in an output of {registers['m']} x {registers['n']}"
        )
    return MatmulShape(
        m=m,
        n=n,
        k=int(registers["k"]),
        act=_type(registers["act_type"]).name,
        weight=_type(registers["weight_type"]).name,
        batch=int(registers["batch"]),
        accumulate=bool(int(registers["flags"]) & DpuFlag.ACCUMULATE),
    )
