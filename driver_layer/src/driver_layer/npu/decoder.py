"""Decoding of a mapped inference in device memory into a program.

The only input is the records that the compiler wrote and the loader placed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from driver_layer.abi import tasks
from driver_layer.abi.layout import Record, RecordArray
from driver_layer.abi.shave import KERNEL_ARGS, MAX_WINDOWS, WINDOW, Instruction, ProgramError
from driver_layer.abi.shave import decode as decode_shave
from driver_layer.errors import DeviceFault
from driver_layer.npu.memory import AddressSpace, Allocation
from driver_layer.npu.program import DmaWork, DpuWork, Program, Queue, ShaveWork, queue_name

_MAX_ARGS = KERNEL_ARGS.itemsize + MAX_WINDOWS * WINDOW.itemsize


class Decoder:
    """Decoder of one mapped inference.

    Args:
        space: the memory that contains the inference.
    """

    def __init__(self, space: AddressSpace) -> None:
        self._space = space
        self._sources: dict[int, tuple[Allocation, int]] = {}

    def decode(self, hpi_address: int) -> Program:
        """Decode the program of a host-parsed inference.

        Raises:
            DeviceFault: a list or a task is malformed, or located outside the context's memory.
        """
        hpi = self._records(hpi_address, 1, tasks.HOST_PARSED_INFERENCE)[0]
        root = self._records(int(hpi["mapped_inference"]["address"]), 1, tasks.MAPPED_INFERENCE)[0]
        queues = (*self._dma_queues(root), *self._dpu_queues(root), *self._shave_queues(root))
        barriers = self._list(root["barriers"], tasks.BARRIER_CONFIG)
        return Program(queues, barriers, tuple(self._sources.values()))

    def _bytes(self, address: int, size: int) -> Any:
        allocation = self._space.find(address)
        view = self._space.view(address, size)
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

    def _dma_queues(self, root: Any) -> Iterator[Queue]:
        for channel in ("ddr", "cmx"):
            for port, reference in enumerate(root[f"dma_{channel}"]):
                records = self._list(reference, tasks.DMA_TASK)
                if len(records):
                    yield _dma_queue(queue_name(f"dma_{channel}", port), records)

    def _dpu_queues(self, root: Any) -> Iterator[Queue]:
        for tile, reference in enumerate(root["invariants"]):
            invariants = self._list(reference, tasks.DPU_INVARIANT)
            variants = self._list(root["variants"][tile], tasks.DPU_VARIANT)
            if len(invariants):
                yield _dpu_queue(tile, invariants, variants)

    def _shave_queues(self, root: Any) -> Iterator[Queue]:
        for tile, reference in enumerate(root["kernel_invocations"]):
            invocations = self._list(reference, tasks.KERNEL_INVOCATION)
            ranges = self._list(root["kernel_ranges"][tile], tasks.KERNEL_RANGE)
            programs = [self._program(one) for one in ranges]
            if len(invocations):
                yield self._shave_queue(tile, invocations, programs)

    def _program(self, kernel_range: Any) -> list[Instruction]:
        address, size = int(kernel_range["kernel_entry"]), int(kernel_range["code_size"])
        try:
            return decode_shave(self._bytes(address, size).tobytes())
        except ProgramError as error:
            raise DeviceFault(str(error), address=address) from None

    def _shave_queue(
        self, tile: int, invocations: RecordArray, programs: list[list[Instruction]]
    ) -> Queue:
        name = queue_name("shave", tile)
        program_of: list[int] = invocations["range_index"].tolist()
        sizes: list[int] = invocations["args_size"].tolist()
        arguments: list[bytes] = []
        for index, address in enumerate(invocations["kernel_args"].tolist()):
            program, size = program_of[index], sizes[index]
            try:
                if program >= len(programs) or not KERNEL_ARGS.itemsize <= size <= _MAX_ARGS:
                    what = f"kernel range {program} of {len(programs)}"
                    raise DeviceFault(f"invalid invocation: {what}, {size} bytes of arguments")
                arguments.append(self._bytes(address, size).tobytes())
            except DeviceFault as fault:
                raise fault.at(name, index) from None
        work = ShaveWork(tile, programs, program_of, arguments)
        return _scheduled(name, invocations["scheduling"], [1] * len(invocations), work)


def _dma_queue(name: str, records: RecordArray) -> Queue:
    descriptors = records["descriptor"]
    return Queue(
        name,
        waits=_joined(descriptors["consumer_lo"], descriptors["consumer_hi"]),
        posts=_joined(descriptors["producer_lo"], descriptors["producer_hi"]),
        start_after=records["start_after"].tolist(),
        slots=[1] * len(records),
        work=DmaWork(descriptors),
    )


def _dpu_queue(tile: int, invariants: RecordArray, variants: RecordArray) -> Queue:
    name = queue_name("dpu", tile)
    counts = invariants["variant_count"].astype(np.int64)
    first = [0, *np.cumsum(counts).tolist()]
    if first[-1] != len(variants):
        raise DeviceFault(f"tile {tile}: invariants have {first[-1]} of {len(variants)} variants")
    if not counts.all():
        message = "the invariant has no variants"
        raise DeviceFault(message, name, int(counts.argmin()))
    work = DpuWork(tile, invariants["registers"], variants, first)
    return _scheduled(name, invariants["scheduling"], counts.tolist(), work)


def _scheduled(
    name: str, scheduling: RecordArray, slots: list[int], work: DpuWork | ShaveWork
) -> Queue:
    wait, post = scheduling["wait_mask"], scheduling["post_mask"]
    return Queue(
        name,
        waits=_joined(wait[:, 0], wait[:, 1]),
        posts=_joined(post[:, 0], post[:, 1]),
        start_after=scheduling["start_after"].tolist(),
        slots=slots,
        work=work,
    )


def _joined(low: RecordArray, high: RecordArray) -> list[int]:
    """Return 128-bit masks from two halves."""
    if not high.any():
        return low.tolist()
    return [one | two << 64 for one, two in zip(low.tolist(), high.tolist(), strict=True)]
