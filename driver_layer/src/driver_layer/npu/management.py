"""The management core: issues tasks in queue order under the barriers, and decides nothing.

The order in which a schedule's barriers let its tasks run does not depend on data, so it is found
by simulating the barriers once for each loaded program; later inferences follow it directly.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from driver_layer.engines.contract import Engines
from driver_layer.errors import DeviceFault
from driver_layer.npu.barriers import BarrierFile
from driver_layer.npu.bus import Bus
from driver_layer.npu.memory import AddressSpace
from driver_layer.npu.program import Decoder, Program, Queue


@dataclass(frozen=True, slots=True)
class Issue:
    """One step of an inference: which task of which queue runs next."""

    queue: Queue
    index: int


_Orders = dict[int, tuple[Program, list[Issue]]]
"""What is remembered of a context's programs, by the address of their inference."""


class ManagementCore:
    """Runs inferences, one at a time.

    Args:
        engines: what executes the tasks.
        physical_barriers: how many barriers the device has.
    """

    def __init__(self, engines: Engines, physical_barriers: int) -> None:
        self._engines = engines
        self._physical_barriers = physical_barriers
        self._orders: WeakKeyDictionary[AddressSpace, _Orders] = WeakKeyDictionary()

    def run_inference(self, bus: Bus, hpi_address: int) -> None:
        """Execute the program behind a host-parsed inference.

        Raises:
            DeviceFault: the program is malformed, deadlocks, or a task fails.
        """
        for issue in self._order(bus, hpi_address):
            try:
                issue.queue.tasks[issue.index].run()
            except DeviceFault as fault:
                raise fault.at(issue.queue.name, issue.index) from None

    def forget(self, bus: Bus, hpi_address: int) -> None:
        """Drop what is remembered of a program that is being unloaded."""
        self._orders.get(bus.space, {}).pop(hpi_address, None)

    def _order(self, bus: Bus, hpi_address: int) -> list[Issue]:
        orders = self._orders.setdefault(bus.space, {})
        known = orders.get(hpi_address)
        if known is not None and not known[0].stale(bus):
            return known[1]
        program = Decoder(bus, self._engines).decode(hpi_address)
        order = issue_order(program, self._physical_barriers)
        orders[hpi_address] = (program, order)
        return order


def issue_order(program: Program, physical_barriers: int) -> list[Issue]:
    """Find the order in which the barriers let a program's tasks run.

    Each queue issues its head as soon as the head's barriers allow; among several the one that
    comes first in ``program.queues`` goes first.

    Raises:
        DeviceFault: a deadlock, a barrier used wrongly, or one that is never completed.
    """
    barriers = BarrierFile(program.barriers, physical_barriers)
    heads = [0] * len(program.queues)
    order: list[Issue] = []
    progress = True
    while progress:
        progress = False
        for number, queue in enumerate(program.queues):
            while heads[number] < len(queue.tasks) and _ready(queue, heads[number], barriers):
                index = heads[number]
                task = queue.tasks[index]
                try:
                    barriers.finish(task.wait, task.post, task.slots)
                except DeviceFault as fault:
                    raise fault.at(queue.name, index) from None
                order.append(Issue(queue, index))
                heads[number] += 1
                progress = True
    _check_complete(program, heads, barriers)
    return order


def _ready(queue: Queue, index: int, barriers: BarrierFile) -> bool:
    task = queue.tasks[index]
    return task.start_after <= barriers.programmed_below and barriers.open(task.wait)


def _check_complete(program: Program, heads: list[int], barriers: BarrierFile) -> None:
    for queue, head in zip(program.queues, heads, strict=True):
        if head < len(queue.tasks):
            task = queue.tasks[head]
            raise DeviceFault(
                f"deadlock: waits for barriers {barriers.describe(task.wait)}, issues after "
                f"{task.start_after} of which {barriers.programmed_below} are programmed",
                queue.name,
                head,
            )
    unfinished = barriers.unfinished()
    if unfinished:
        raise DeviceFault(f"the inference ends with open barriers {unfinished[:8]}")
