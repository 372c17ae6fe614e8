"""A program in the form that the management core uses: queues of tasks, and barriers.

The tasks are arrays of the blob's records; the engines implement their effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from driver_layer.abi.layout import RecordArray
from driver_layer.abi.shave import Instruction
from driver_layer.engines.contract import Engines
from driver_layer.errors import DriverFault, fault_of
from driver_layer.npu.bus import Bus
from driver_layer.npu.memory import Allocation

Prepared = TypeVar("Prepared")


class Work(Protocol):
    """The tasks of a queue, without their order and barriers."""

    def prepare(self, index: int, engines: Engines[Prepared], bus: Bus) -> Prepared:
        """Prepare one task with the given engines; raises DeviceFault if the task is malformed."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DmaWork:
    """Transfers: DMA_DESCRIPTOR records."""

    descriptors: RecordArray

    def prepare(self, index: int, engines: Engines[Prepared], bus: Bus) -> Prepared:
        """Prepare one transfer."""
        return engines.dma(self.descriptors[index], bus)


@dataclass(frozen=True, slots=True, eq=False)
class DpuWork:
    """Workloads of one tile: DPU_REGISTERS records, each with a range of DPU_VARIANT records.

    The variants of workload i are ``first[i]`` to ``first[i + 1]``, exclusive; at least one.
    """

    tile: int
    registers: RecordArray
    variants: RecordArray
    first: Sequence[int]

    def prepare(self, index: int, engines: Engines[Prepared], bus: Bus) -> Prepared:
        """Prepare one workload with its variants."""
        own = list(self.variants[self.first[index] : self.first[index + 1]])
        return engines.dpu(self.registers[index], own, self.tile, bus)


@dataclass(frozen=True, slots=True, eq=False)
class ShaveWork:
    """SHAVE invocations on one tile, each with one of the programs and one argument block."""

    tile: int
    programs: Sequence[Sequence[Instruction]]
    program_of: Sequence[int]
    arguments: Sequence[bytes]

    def prepare(self, index: int, engines: Engines[Prepared], bus: Bus) -> Prepared:
        """Prepare one invocation."""
        program = self.programs[self.program_of[index]]
        return engines.shave(program, self.arguments[index], self.tile, bus)


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """A FIFO of one engine; each sequence has an entry per task.

    ``waits`` and ``posts`` are masks of physical barriers; a task is issued once the virtual
    barriers below ``start_after`` are programmed, and counts ``slots`` times in its barriers.
    """

    name: str
    waits: Sequence[int]
    posts: Sequence[int]
    start_after: Sequence[int]
    slots: Sequence[int]
    work: Work

    def __len__(self) -> int:
        return len(self.waits)


class BlobKey:
    """Identity of a loaded blob; clones of an inference share it."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The memory of an inference.

    Inferences of one blob run the same tasks on different memory, so a program prepared for one of
    them serves another after its addresses are rebased.

    Attributes:
        blob: key that is equal for inferences of one blob.
        spans: device address and size of all memory that the tasks may access, without CMX: the
            sections and the caller's buffers, in the same order for all inferences of the blob.
    """

    blob: BlobKey
    spans: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A decoded inference, and the memory that it was decoded from."""

    queues: tuple[Queue, ...]
    barriers: RecordArray
    sources: tuple[tuple[Allocation, int], ...]
    """Each allocation read, with its generation at the time."""


def prepare_queue(queue: Queue, engines: Engines[Prepared], bus: Bus) -> list[Prepared]:
    """Prepare all tasks of a queue with the given engines.

    Raises:
        DeviceFault: a task is malformed; the fault names the task.
        OutOfMemory: the host has no memory left; the error names the task.
    """
    prepared: list[Prepared] = []
    for index in range(len(queue)):
        try:
            prepared.append(queue.work.prepare(index, engines, bus))
        except (DriverFault, MemoryError) as error:
            raise fault_of(error, queue.name, index) from None
    return prepared


def queue_name(kind: str, number: int) -> str:
    """Return the name of a queue for errors and timelines.

    Args:
        kind: one of ``abi.layer_map.QUEUE_KINDS``.
        number: the queue's port or tile.
    """
    if kind.startswith("dma_"):
        return f"DMA port {number} {kind.removeprefix('dma_').upper()}"
    return f"{kind.upper()} tile {number}"
