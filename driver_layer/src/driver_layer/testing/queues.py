"""Hand-made queues, for tests of the order of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driver_layer.engines.contract import Engines
from driver_layer.errors import DriverUsageError
from driver_layer.npu.bus import Bus
from driver_layer.npu.program import Prepared, Queue


@dataclass(frozen=True, slots=True)
class QueuedTask:
    """Scheduling of a task; masks are of physical barriers."""

    wait: int = 0
    post: int = 0
    after: int = 0
    slots: int = 1


class NoWork:
    """Tasks that can be ordered but not executed; satisfies ``npu.program.Work``."""

    def prepare(self, index: int, engines: Engines[Prepared], bus: Bus) -> Prepared:
        """Raise DriverUsageError."""
        del engines, bus
        raise DriverUsageError(f"task {index} cannot be executed, only ordered")


def queue_of(name: str, tasks: Sequence[QueuedTask]) -> Queue:
    """Return a queue of the given tasks."""
    return Queue(
        name,
        waits=[task.wait for task in tasks],
        posts=[task.post for task in tasks],
        start_after=[task.after for task in tasks],
        slots=[task.slots for task in tasks],
        work=NoWork(),
    )
