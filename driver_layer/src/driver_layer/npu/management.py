"""The management core: decodes task lists, and runs the programs that it has prepared.

Prepared programs are cached by address, and rebased onto the memory of other inferences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn
from weakref import WeakKeyDictionary

import numpy as np

from driver_layer.engines.contract import Run
from driver_layer.engines.executor import Executor, Rebasable, Spans
from driver_layer.engines.reference import explain_fault
from driver_layer.errors import OutOfMemory
from driver_layer.npu.bus import Bus
from driver_layer.npu.decoder import Decoder
from driver_layer.npu.memory import AddressSpace, Allocation
from driver_layer.npu.order import Order
from driver_layer.npu.program import BlobKey, Footprint, Program

_MOST_PREPARED = 4
"""Limit of the prepared programs of one inference, which may alternate between sets of buffers."""

_MOST_REBASABLE = 4
"""Limit of the rebasable programs of one blob. A blob needs several if its inferences differ in
the spans that adjoin each other, as the weights of some layers do in a file."""


@dataclass(slots=True)
class _Prepared:
    """A program that runs as long as its memory stays in place.

    Attributes:
        run: function that executes the program.
        sources: the allocations that it was decoded from, each with its generation at the time.
        used: the allocations that its tasks access.
        frees: ``AddressSpace.frees`` at the last check that all allocations are in place.
    """

    run: Run
    sources: tuple[tuple[Allocation, int], ...]
    used: tuple[Allocation, ...]
    frees: int

    def in_place(self, space: AddressSpace) -> bool:
        """Return whether the space still holds all allocations of the program."""
        frees = space.frees  # before any allocation is looked up
        if self.frees != frees:
            read = (allocation for allocation, _ in self.sources)
            if any(space.find(one.address) is not one for one in (*self.used, *read)):
                return False
            self.frees = frees
        return True

    def changed(self) -> bool:
        """Return whether an allocation was written after the program was decoded from it."""
        return any(allocation.generation != seen for allocation, seen in self.sources)


@dataclass(frozen=True, slots=True)
class _Rebasable:
    """A prepared program that other inferences of its blob can use.

    Attributes:
        run: the program.
        sources: the spans of the footprint that it was decoded from.
    """

    run: Rebasable
    sources: tuple[int, ...]


class ManagementCore:
    """The management core of one device.

    Args:
        executor: the executor, which prepares and runs programs.
        physical_barriers: number of physical barriers of the device.
    """

    def __init__(self, executor: Executor, physical_barriers: int) -> None:
        self._executor = executor
        self._physical_barriers = physical_barriers
        self._cached: WeakKeyDictionary[AddressSpace, dict[int, list[_Prepared]]] = (
            WeakKeyDictionary()
        )
        self._rebasable: WeakKeyDictionary[BlobKey, list[_Rebasable]] = WeakKeyDictionary()

    def run_inference(self, bus: Bus, hpi_address: int) -> None:
        """Execute the program of a host-parsed inference.

        Raises:
            DeviceFault: the program is malformed, deadlocks, or a task fails.
            OutOfMemory: the host has no memory left.
        """
        self.prepare(bus, hpi_address)()

    def prepare(self, bus: Bus, hpi_address: int, footprint: Footprint | None = None) -> Run:
        """Return the cached program, or rebase one of the same blob, or prepare it.

        Args:
            bus: the memory that the program can access.
            hpi_address: address of the HOST_PARSED_INFERENCE record.
            footprint: the memory that the program accesses, if known.

        Raises:
            DeviceFault: the program is malformed, or deadlocks.
            OutOfMemory: the host has no memory left.
        """
        by_address = self._cached.setdefault(bus.space, {})
        cached = [one for one in by_address.get(hpi_address, []) if one.in_place(bus.space)]
        found = next((one for one in cached if not one.changed()), None)
        if found is None and footprint is not None:
            found = self._rebase(bus, hpi_address, footprint)
        if found is None:
            found = self._prepare(bus, hpi_address, footprint)
        others = [one for one in cached if one is not found]
        by_address[hpi_address] = [found, *others][:_MOST_PREPARED]
        return found.run

    def forget(self, space: AddressSpace, hpi_address: int) -> None:
        """Drop the prepared programs of an inference that is being unloaded."""
        self._cached.get(space, {}).pop(hpi_address, None)

    def release(self, space: AddressSpace) -> None:
        """Drop all prepared programs of a context."""
        self._cached.pop(space, None)

    def _read(self, bus: Bus, hpi_address: int) -> tuple[Program, Order]:
        """Decode a program, and find the order in which its tasks run."""
        program = Decoder(bus.space).decode(hpi_address)
        return program, self._executor.order(program, self._physical_barriers)

    def _prepare(self, bus: Bus, hpi_address: int, footprint: Footprint | None) -> _Prepared:
        frees = bus.space.frees  # before any allocation is looked up
        seen = Bus(bus.cmx, bus.space)
        try:
            program, order = self._read(bus, hpi_address)
            spans = None if footprint is None else _spans(bus, footprint)
            run = self._executor.prepare(program, order, seen, spans)
        except MemoryError as error:
            raise OutOfMemory(f"the host has no memory left for the program: {error}") from None
        if footprint is not None and isinstance(run, Rebasable):
            number_of = {address: n for n, (address, _) in enumerate(footprint.spans)}
            numbers = [number_of.get(allocation.address) for allocation, _ in program.sources]
            if None not in numbers:
                sources = tuple(number for number in numbers if number is not None)
                others = self._rebasable.get(footprint.blob, [])
                kept = [_Rebasable(run, sources), *others][:_MOST_REBASABLE]
                self._rebasable[footprint.blob] = kept
        return _Prepared(run, program.sources, seen.used, frees)

    def _rebase(self, bus: Bus, hpi_address: int, footprint: Footprint) -> _Prepared | None:
        """Rebase a program that was prepared for another inference of the blob."""
        candidates = self._rebasable.get(footprint.blob)
        if not candidates:
            return None
        frees = bus.space.frees  # before any allocation is looked up
        spans = _spans(bus, footprint)

        def explain(step: int) -> NoReturn:
            explain_fault(*self._read(bus, hpi_address), bus, step)

        if spans is None:
            return None
        for candidate in candidates:
            run = candidate.run.rebased(spans, explain)
            if run is not None:
                found = (bus.space.find(address) for address, _ in footprint.spans)
                used = tuple(one for one in found if one is not None)
                sources = (used[number] for number in candidate.sources)
                return _Prepared(run, tuple((one, one.generation) for one in sources), used, frees)
        return None


def _spans(bus: Bus, footprint: Footprint) -> Spans | None:
    """Locate CMX and the footprint in the host's memory; None if a span is not mapped."""
    found = [(tile.ctypes.data, tile.size, tile.size, True) for tile in bus.cmx.tiles]
    for address, size in footprint.spans:
        allocation = bus.space.find(address)
        if allocation is None or address + size > allocation.end:
            return None
        begin = allocation.data.ctypes.data + address - allocation.address
        found.append((begin, size, allocation.end - address, allocation.writable))
    begins, sizes, rooms, writable = (np.array(column) for column in zip(*found, strict=True))
    return Spans(begins, sizes, rooms, writable)
