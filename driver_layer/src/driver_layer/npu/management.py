"""The management core: decodes task lists and runs one inference at a time."""

from __future__ import annotations

from driver_layer.engines.contract import Run
from driver_layer.engines.executor import Executor
from driver_layer.npu.bus import Bus
from driver_layer.npu.decoder import Decoder
from driver_layer.npu.memory import AddressSpace
from driver_layer.npu.order import Order
from driver_layer.npu.prepared_programs import PreparedPrograms
from driver_layer.npu.program import Footprint, Program


class ManagementCore:
    """The management core of one device.

    Args:
        executor: the executor, which prepares and runs programs.
        physical_barriers: number of physical barriers of the device.
    """

    def __init__(self, executor: Executor, physical_barriers: int) -> None:
        self._executor = executor
        self._physical_barriers = physical_barriers
        self._programs = PreparedPrograms(executor)

    def prepare(self, bus: Bus, hpi_address: int, footprint: Footprint | None = None) -> Run:
        """Prepare the program of a host-parsed inference, unless it is cached.

        Args:
            bus: the memory that the program can access.
            hpi_address: address of the HOST_PARSED_INFERENCE record.
            footprint: memory that the program accesses, if known.

        Raises:
            DeviceFault: the program is malformed, or deadlocks.
        """

        def read() -> tuple[Program, Order]:
            program = Decoder(bus.space).decode(hpi_address)
            return program, self._executor.order(program, self._physical_barriers)

        return self._programs.get(bus, hpi_address, read, footprint)

    def run_inference(self, bus: Bus, hpi_address: int) -> None:
        """Execute the program of a host-parsed inference.

        Raises:
            DeviceFault: the program is malformed, deadlocks, or a task fails.
        """
        self.prepare(bus, hpi_address)()

    def forget(self, bus: Bus, hpi_address: int) -> None:
        """Drop the prepared programs of an inference that is being unloaded."""
        self._programs.forget(bus.space, hpi_address)

    def release(self, space: AddressSpace) -> None:
        """Drop the prepared programs of a context."""
        self._programs.release(space)
