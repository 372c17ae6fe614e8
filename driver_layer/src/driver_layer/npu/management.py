"""The management core: runs programs, one at a time, and decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn
from weakref import WeakKeyDictionary

import numpy as np

from driver_layer.engines.contract import Executor, Movable, Run, Spans
from driver_layer.npu.bus import Bus
from driver_layer.npu.decoder import Decoder
from driver_layer.npu.footprint import Footprint, Kin
from driver_layer.npu.memory import AddressSpace, Allocation
from driver_layer.npu.order import Order
from driver_layer.npu.program import Program


@dataclass(slots=True)
class _Prepared:
    """A program that can be run, as long as its memory is as it was."""

    run: Run
    sources: tuple[tuple[Allocation, int], ...]
    """What it was decoded from, each with its generation at the time."""
    used: tuple[Allocation, ...]
    """What its tasks reach."""
    frees: int
    """``AddressSpace.frees`` when all of it was last seen in place."""

    def in_place(self, space: AddressSpace) -> bool:
        """Tell whether all that it reaches is where it was."""
        frees = space.frees  # before anything is looked at
        if self.frees != frees:
            read = (allocation for allocation, _ in self.sources)
            if any(space.find(one.address) is not one for one in (*self.used, *read)):
                return False
            self.frees = frees
        return True

    def changed(self) -> bool:
        """Tell whether what it was decoded from has changed since."""
        return any(allocation.generation != seen for allocation, seen in self.sources)


@dataclass(frozen=True, slots=True)
class _Original:
    """What was prepared for an inference, and can be taken along to others of its kin."""

    run: Movable
    read: tuple[int, ...]
    """The spans of its footprint that it was decoded from."""


_MOST_PREPARED = 4
"""A program that is tied to some buffers by turns is prepared once for each, up to so many."""


_MOST_ORIGINALS = 4
"""Of so many inferences of a kin that could not take along what there was: they differ in what of
their memory touches, as weights of some layers do in a file."""


class ManagementCore:
    """Runs inferences, one at a time.

    Args:
        executor: what prepares and runs programs.
        physical_barriers: how many barriers the device has.
    """

    def __init__(self, executor: Executor, physical_barriers: int) -> None:
        self._executor = executor
        self._physical_barriers = physical_barriers
        self._known: WeakKeyDictionary[AddressSpace, dict[int, list[_Prepared]]] = (
            WeakKeyDictionary()
        )
        self._originals: WeakKeyDictionary[Kin, list[_Original]] = WeakKeyDictionary()

    def prepare(self, bus: Bus, hpi_address: int, footprint: Footprint | None = None) -> Run:
        """Prepare the program behind a host-parsed inference, unless that is done.

        Args:
            bus: what it can reach.
            hpi_address: where its record lies.
            footprint: what it does reach, if that is known.

        Raises:
            DeviceFault: the program is malformed, or deadlocks.
        """
        known = self._known.setdefault(bus.space, {})
        there = [one for one in known.get(hpi_address, []) if one.in_place(bus.space)]
        found = next((one for one in there if not one.changed()), None)
        if found is None and footprint is not None:
            found = self._moved(bus, hpi_address, footprint)
        if found is None:
            found = self._prepare(bus, hpi_address, footprint)
        others = [one for one in there if one is not found]
        known[hpi_address] = [found, *others][:_MOST_PREPARED]
        return found.run

    def run_inference(self, bus: Bus, hpi_address: int) -> None:
        """Execute the program behind a host-parsed inference.

        Raises:
            DeviceFault: the program is malformed, deadlocks, or a task fails.
        """
        self.prepare(bus, hpi_address)()

    def forget(self, bus: Bus, hpi_address: int) -> None:
        """Drop what is remembered of a program that is being unloaded."""
        self._known.get(bus.space, {}).pop(hpi_address, None)

    def _prepare(self, bus: Bus, hpi_address: int, footprint: Footprint | None) -> _Prepared:
        frees = bus.space.frees  # before anything is looked at
        program, order = self._decode(bus, hpi_address)
        seen = Bus(bus.cmx, bus.space)
        spans = None if footprint is None else _spans(bus, footprint)
        run = self._executor.prepare(program, order, seen, spans)
        if footprint is not None and isinstance(run, Movable):
            number_of = {address: n for n, (address, _) in enumerate(footprint.spans)}
            read = [number_of.get(allocation.address) for allocation, _ in program.sources]
            if None not in read:
                numbers = tuple(number for number in read if number is not None)
                others = self._originals.get(footprint.kin, [])
                made = [_Original(run, numbers), *others]
                self._originals[footprint.kin] = made[:_MOST_ORIGINALS]
        return _Prepared(run, program.sources, seen.used, frees)

    def _moved(self, bus: Bus, hpi_address: int, footprint: Footprint) -> _Prepared | None:
        """Take what was prepared for another inference of the same kin."""
        originals = self._originals.get(footprint.kin)
        if not originals:
            return None
        frees = bus.space.frees  # before anything is looked at
        spans = _spans(bus, footprint)

        def explain(step: int) -> NoReturn:
            program, order = self._decode(bus, hpi_address)
            self._executor.explain(program, order, bus, step)

        if spans is None:
            return None
        for original in originals:
            run = original.run.moved(spans, explain)
            if run is not None:
                found = (bus.space.find(address) for address, _ in footprint.spans)
                used = tuple(one for one in found if one is not None)
                read = (used[number] for number in original.read)
                return _Prepared(run, tuple((one, one.generation) for one in read), used, frees)
        return None

    def _decode(self, bus: Bus, hpi_address: int) -> tuple[Program, Order]:
        program = Decoder(bus.space).decode(hpi_address)
        return program, self._executor.order(program, self._physical_barriers)


def _spans(bus: Bus, footprint: Footprint) -> Spans | None:
    """Where a program's memory and CMX are in the host's; None if something is not there."""
    found = [(tile.ctypes.data, tile.size, tile.size, True) for tile in bus.cmx.tiles]
    for address, size in footprint.spans:
        allocation = bus.space.find(address)
        if allocation is None or address + size > allocation.end:
            return None
        begin = allocation.data.ctypes.data + address - allocation.address
        found.append((begin, size, allocation.end - address, allocation.writable))
    begins, sizes, rooms, writable = (np.array(column) for column in zip(*found, strict=True))
    return Spans(begins, sizes, rooms, writable)
