"""The order of tasks that a program's barriers impose.

The order does not depend on data, so the barriers are simulated only once for each program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from driver_layer.errors import DeviceFault
from driver_layer.npu.barriers import BarrierFile
from driver_layer.npu.program import Program, Queue


@dataclass(frozen=True, slots=True)
class Order:
    """Steps of a program: the number of a queue, and the index of a task in it, for each."""

    queues: Sequence[int]
    tasks: Sequence[int]

    def __len__(self) -> int:
        return len(self.queues)

    def steps(self) -> Iterator[tuple[int, int]]:
        """Return an iterator over the queue and task of each step."""
        return zip(self.queues, self.tasks, strict=True)


def issue_order(program: Program, physical_barriers: int) -> Order:
    """Return the order in which the barriers allow a program's tasks to run.

    Each queue issues its head task as soon as the task's barriers allow; if several queues can
    issue, the first one in ``program.queues`` does.

    Raises:
        DeviceFault: a deadlock, or a barrier that is misused or never completed.
    """
    barriers = BarrierFile(program.barriers, physical_barriers)
    heads = [0] * len(program.queues)
    queues: list[int] = []
    tasks: list[int] = []
    progress = True
    while progress:
        progress = False
        for number, queue in enumerate(program.queues):
            begin = heads[number]
            end = heads[number] = _issue(queue, begin, barriers)
            if end > begin:
                queues += [number] * (end - begin)
                tasks += range(begin, end)
                progress = True
    check_complete(program, heads, barriers)
    return Order(queues, tasks)


def _issue(queue: Queue, head: int, barriers: BarrierFile) -> int:
    """Issue tasks of a queue while the barriers allow; return the index of the next task."""
    while head < len(queue):
        if not is_ready(queue, head, barriers):
            break
        finish(queue, head, barriers)
        head += 1
    return head


def is_ready(queue: Queue, index: int, barriers: BarrierFile) -> bool:
    """Return whether the barriers allow a task of a queue to begin."""
    programmed = queue.start_after[index] <= barriers.programmed_below
    return programmed and barriers.open(queue.waits[index])


def finish(queue: Queue, index: int, barriers: BarrierFile) -> None:
    """Count the end of a task in its barriers.

    Raises:
        DeviceFault: a barrier is misused.
    """
    try:
        barriers.finish(queue.waits[index], queue.posts[index], queue.slots[index])
    except DeviceFault as fault:
        raise fault.at(queue.name, index) from None


def check_complete(program: Program, heads: Sequence[int], barriers: BarrierFile) -> None:
    """Raise DeviceFault if a task has not run, or a barrier is not completed.

    Args:
        program: queues and barriers.
        heads: number of tasks of each queue that have run.
        barriers: the barriers' state at the end.
    """
    for queue, head in zip(program.queues, heads, strict=True):
        if head < len(queue):
            raise DeviceFault(
                f"deadlock: waits for barriers {barriers.describe(queue.waits[head])}; needs "
                f"{queue.start_after[head]} programmed barriers, of which the first "
                f"{barriers.programmed_below} are",
                queue.name,
                head,
            )
    unfinished = barriers.unfinished()
    if unfinished:
        raise DeviceFault(f"the inference ends with open barriers {unfinished[:8]}")
