"""From a mapped inference in device memory to queues of prepared tasks.

The management core reads the records that the compiler wrote and the loader placed; nothing else
tells it what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from driver_layer.abi import tasks
from driver_layer.abi.layout import Record, RecordArray
from driver_layer.abi.shave import KERNEL_ARGS, MAX_WINDOWS, WINDOW, Instruction, ProgramError
from driver_layer.abi.shave import decode as decode_shave
from driver_layer.engines.contract import Engines, Run
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus
from driver_layer.npu.memory import Allocation

_MAX_ARGS = KERNEL_ARGS.itemsize + MAX_WINDOWS * WINDOW.itemsize


@dataclass(frozen=True, slots=True)
class Task:
    """One entry of a queue: what it waits for, what it feeds, what it does."""

    wait: int
    post: int
    start_after: int
    slots: int
    """How many times it counts in each of its barriers."""
    run: Run


@dataclass(frozen=True, slots=True)
class Queue:
    """A first-in-first-out queue of one engine."""

    name: str
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A decoded inference, and the memory that it was decoded from."""

    queues: tuple[Queue, ...]
    barriers: RecordArray
    sources: tuple[tuple[Allocation, int], ...]
    """Each allocation read, with its generation at the time."""
    frees: int

    def stale(self, bus: Bus) -> bool:
        """Tell whether the memory has changed since."""
        return self.frees != bus.space.frees or any(
            allocation.generation != generation for allocation, generation in self.sources
        )


def queue_name(kind: str, number: int) -> str:
    """What a queue is called in errors and timelines.

    Args:
        kind: one of ``abi.layer_map.QUEUE_KINDS``.
        number: its port or tile.
    """
    if kind.startswith("dma_"):
        return f"DMA port {number} {kind.removeprefix('dma_').upper()}"
    return f"{kind.upper()} tile {number}"


class Decoder:
    """Reads one mapped inference."""

    def __init__(self, bus: Bus, engines: Engines) -> None:
        self._bus = bus
        self._engines = engines
        self._sources: dict[int, tuple[Allocation, int]] = {}

    def decode(self, hpi_address: int) -> Program:
        """Decode the program behind a host-parsed inference.

        Raises:
            DeviceFault: a list or a task is malformed, or leads out of the context's memory.
        """
        frees = self._bus.space.frees
        hpi = self._records(hpi_address, 1, tasks.HOST_PARSED_INFERENCE)[0]
        root = self._records(int(hpi["mapped_inference"]["address"]), 1, tasks.MAPPED_INFERENCE)[0]
        queues = (*self._dma_queues(root), *self._dpu_queues(root), *self._shave_queues(root))
        barriers = self._list(root["barriers"], tasks.BARRIER_CONFIG)
        return Program(queues, barriers, tuple(self._sources.values()), frees)

    def _bytes(self, address: int, size: int) -> Any:
        allocation = self._bus.space.find(address)
        view = self._bus.space.view(address, size)
        if allocation is not None:
            self._sources[allocation.address] = (allocation, allocation.generation)
        return view

    def _records(self, address: int, count: int, kind: Record) -> RecordArray:
        return np.ndarray(count, kind, self._bytes(address, count * kind.itemsize)).copy()

    def _list(self, reference: Any, kind: Record) -> RecordArray:
        count = int(reference["count"])
        if not count:
            return np.zeros(0, kind)
        return self._records(int(reference["address"]), count, kind)

    def _queue(self, name: str, records: Sequence[Any], make: Callable[[Any], Task]) -> list[Queue]:
        made: list[Task] = []
        for index, one in enumerate(records):
            try:
                made.append(make(one))
            except DeviceFault as fault:
                raise fault.at(name, index) from None
        return [Queue(name, tuple(made))] if made else []

    def _dma_queues(self, root: Any) -> list[Queue]:
        return [
            queue
            for channel in ("ddr", "cmx")
            for port, reference in enumerate(root[f"dma_{channel}"])
            for queue in self._queue(
                queue_name(f"dma_{channel}", port),
                list(self._list(reference, tasks.DMA_TASK)),
                self._dma_task,
            )
        ]

    def _dma_task(self, task: Any) -> Task:
        descriptor = task["descriptor"]
        return Task(
            wait=_join(descriptor["consumer_lo"], descriptor["consumer_hi"]),
            post=_join(descriptor["producer_lo"], descriptor["producer_hi"]),
            start_after=int(task["start_after"]),
            slots=1,
            run=self._engines.dma(descriptor, self._bus),
        )

    def _dpu_queues(self, root: Any) -> list[Queue]:
        queues: list[Queue] = []
        for tile, reference in enumerate(root["invariants"]):
            invariants = self._list(reference, tasks.DPU_INVARIANT)
            variants = self._list(root["variants"][tile], tasks.DPU_VARIANT)
            ends = np.cumsum(invariants["variant_count"], dtype=np.int64)
            if len(invariants) and ends[-1] != len(variants):
                raise DeviceFault(
                    f"tile {tile}: invariants own {ends[-1]} of {len(variants)} variants"
                )
            work = [
                (invariant, variants[end - int(invariant["variant_count"]) : end])
                for invariant, end in zip(invariants, ends.tolist(), strict=True)
            ]
            queues += self._queue(queue_name("dpu", tile), work, partial(self._dpu_task, tile))
        return queues

    def _dpu_task(self, tile: int, work: tuple[Any, RecordArray]) -> Task:
        invariant, variants = work
        if not len(variants):
            raise DeviceFault("an invariant without variants")
        run = self._engines.dpu(invariant["registers"], list(variants), tile, self._bus)
        return _scheduled(invariant["scheduling"], len(variants), run)

    def _shave_queues(self, root: Any) -> list[Queue]:
        queues: list[Queue] = []
        for tile, reference in enumerate(root["kernel_invocations"]):
            invocations = self._list(reference, tasks.KERNEL_INVOCATION)
            ranges = self._list(root["kernel_ranges"][tile], tasks.KERNEL_RANGE)
            programs = [self._program(one) for one in ranges]
            make = partial(self._shave_task, tile, programs)
            queues += self._queue(queue_name("shave", tile), list(invocations), make)
        return queues

    def _program(self, kernel_range: Any) -> list[Instruction]:
        address, size = int(kernel_range["kernel_entry"]), int(kernel_range["code_size"])
        try:
            return decode_shave(self._bytes(address, size).tobytes())
        except ProgramError as error:
            raise DeviceFault(str(error), address=address) from None

    def _shave_task(
        self, tile: int, programs: Sequence[list[Instruction]], invocation: Any
    ) -> Task:
        index, size = int(invocation["range_index"]), int(invocation["args_size"])
        if index >= len(programs) or not KERNEL_ARGS.itemsize <= size <= _MAX_ARGS:
            raise DeviceFault(f"kernel range {index} of {len(programs)}, {size} bytes of arguments")
        args = self._bytes(int(invocation["kernel_args"]), size).tobytes()
        run = self._engines.shave(programs[index], args, tile, self._bus)
        return _scheduled(invocation["scheduling"], 1, run)


def _join(low: Any, high: Any) -> int:
    return int(low) | int(high) << 64


def _scheduled(scheduling: Any, slots: int, run: Run) -> Task:
    return Task(
        wait=_join(*scheduling["wait_mask"]),
        post=_join(*scheduling["post_mask"]),
        start_after=int(scheduling["start_after"]),
        slots=slots,
        run=run,
    )
