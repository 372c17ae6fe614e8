"""An executor that runs a program's tasks one after the other, with any engines."""

from __future__ import annotations

from driver_layer.engines.contract import Engines, Run
from driver_layer.engines.executor import Spans
from driver_layer.errors import DriverFault, fault_of
from driver_layer.npu.bus import Bus
from driver_layer.npu.order import Order, issue_order
from driver_layer.npu.program import Program, prepare_queue


class TaskByTask:
    """An executor from engines; satisfies ``engines.executor.Executor``.

    Args:
        engines: engines that prepare and run single tasks.
    """

    def __init__(self, engines: Engines[Run]) -> None:
        self._engines = engines

    def order(self, program: Program, physical_barriers: int) -> Order:
        """Simulate the barriers and return the order of tasks."""
        return issue_order(program, physical_barriers)

    def prepare(self, program: Program, order: Order, bus: Bus, spans: Spans | None = None) -> Run:
        """Prepare queue by queue; the result is never rebasable."""
        del spans
        prepared = [prepare_queue(queue, self._engines, bus) for queue in program.queues]
        steps = [
            (prepared[number][index], program.queues[number].name, index)
            for number, index in order.steps()
        ]

        def run() -> None:
            for task, name, index in steps:
                try:
                    task()
                except (DriverFault, MemoryError) as error:
                    raise fault_of(error, name, index) from None

        return run
