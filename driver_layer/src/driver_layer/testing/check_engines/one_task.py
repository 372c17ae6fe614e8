"""An adapter from an executor to engines: each task is a separate program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driver_layer.abi.layout import Record, RecordArray
from driver_layer.abi.platforms import tile_base
from driver_layer.abi.shave import Instruction
from driver_layer.abi.tasks import BARRIER_CONFIG, DMA_DESCRIPTOR, DPU_REGISTERS, DPU_VARIANT
from driver_layer.engines.contract import Run
from driver_layer.engines.executor import Executor
from driver_layer.npu.bus import Bus
from driver_layer.npu.memory import MemoryKind
from driver_layer.npu.order import Order
from driver_layer.npu.program import DmaWork, DpuWork, Program, Queue, ShaveWork, Work


def free_queue(name: str, work: Work, tasks: int) -> Queue:
    """Return a queue whose tasks wait for no barriers."""
    none = [0] * tasks
    return Queue(name, none, none, none, [1] * tasks, work)


class OneTask:
    """Engines (``engines.contract.Engines``) that run each task as a program.

    An executor may leave out writes to CMX that no task reads. Therefore each program ends with a
    copy of all of CMX, which is then written back to CMX.

    Args:
        executor: the executor under test.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def dma(self, descriptor: Any, bus: Bus) -> Run:
        """Prepare a program of one transfer."""
        return self._prepare(DmaWork(_array(DMA_DESCRIPTOR, [descriptor])), bus)

    def dpu(self, registers: Any, variants: Sequence[Any], tile: int, bus: Bus) -> Run:
        """Prepare a program of one workload."""
        own = _array(DPU_VARIANT, variants)
        work = DpuWork(tile, _array(DPU_REGISTERS, [registers]), own, [0, len(own)])
        return self._prepare(work, bus)

    def shave(self, program: Sequence[Instruction], args: bytes, tile: int, bus: Bus) -> Run:
        """Prepare a program of one invocation."""
        return self._prepare(ShaveWork(tile, [program], [0], [args]), bus)

    def _prepare(self, work: Work, bus: Bus) -> Run:
        tiles = bus.cmx.tiles
        taken = bus.space.allocate(sum(tile.size for tile in tiles), MemoryKind.DMA)
        descriptors = np.zeros(len(tiles), DMA_DESCRIPTOR)
        places = np.split(taken.data, len(tiles))
        for number, place in enumerate(places):
            descriptors[number]["src"] = tile_base(number)
            descriptors[number]["dst"] = taken.address + number * place.size
            descriptors[number]["src_width"] = descriptors[number]["dst_width"] = place.size
        queues = (free_queue("task", work, 1), free_queue("out", DmaWork(descriptors), len(tiles)))
        order = Order([0, *[1] * len(tiles)], [0, *range(len(tiles))])
        program = Program(queues, np.zeros(0, BARRIER_CONFIG), ())
        run = self._executor.prepare(program, order, bus)

        def run_and_put_back() -> None:
            run()
            for tile, place in zip(tiles, places, strict=True):
                tile[:] = place

        return run_and_put_back


def _array(kind: Record, records: Sequence[Any]) -> RecordArray:
    made = np.zeros(len(records), kind)
    for index, record in enumerate(records):
        made[index] = record
    return made
