"""The management core: runs programs, one at a time, and decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from driver_layer.engines.contract import Executor, Run
from driver_layer.npu.bus import Bus
from driver_layer.npu.decoder import Decoder
from driver_layer.npu.memory import AddressSpace, Allocation
from driver_layer.npu.program import Program


@dataclass(slots=True)
class _Prepared:
    """A program that can be run, as long as its memory is as it was."""

    program: Program
    run: Run
    used: tuple[Allocation, ...]
    """What its tasks reach."""
    frees: int
    """``AddressSpace.frees`` when all of it was last seen in place."""

    def in_place(self, space: AddressSpace) -> bool:
        """Tell whether all that it reaches is where it was."""
        if self.frees != space.frees:
            read = (allocation for allocation, _ in self.program.sources)
            if any(space.find(one.address) is not one for one in (*self.used, *read)):
                return False
            self.frees = space.frees
        return True


_MOST_PREPARED = 4
"""A program that is tied to some buffers by turns is prepared once for each, up to so many."""


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

    def prepare(self, bus: Bus, hpi_address: int) -> Run:
        """Prepare the program behind a host-parsed inference, unless that is done.

        Raises:
            DeviceFault: the program is malformed, or deadlocks.
        """
        known = self._known.setdefault(bus.space, {})
        there = [one for one in known.get(hpi_address, []) if one.in_place(bus.space)]
        found = next((one for one in there if not one.program.changed()), None)
        if found is None:
            found = self._prepare(bus, hpi_address)
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

    def _prepare(self, bus: Bus, hpi_address: int) -> _Prepared:
        frees = bus.space.frees  # before anything is looked at
        program = Decoder(bus.space).decode(hpi_address)
        order = self._executor.order(program, self._physical_barriers)
        seen = Bus(bus.cmx, bus.space)
        run = self._executor.prepare(program, order, seen)
        return _Prepared(program, run, seen.used, frees)
