"""Barriers, which the device can count, for the dependencies between tasks.

A queue runs its tasks in order, so a task needs a barrier only for tasks of other queues, and only
if no other wait implies them. For each task, the assignment tracks the tasks of every queue that
are known to be done when it starts.

Physical barriers are few: virtual barrier v uses physical barrier v mod n, after v - n has been
consumed. The management core therefore holds a task until all virtual barriers up to its own are
programmed. No deadlock can occur as long as no barrier is fed long before it is programmed. So
time is cut into *eras* of n / 3 barriers. The first task of an era waits for all tasks issued
before the previous era, most of which are done by then. Later tasks wait for this task instead of
such old ones. So a barrier is fed from its own era or the previous one, and the barrier that used
the same physical one before is two eras older than the tasks that feed it.

A program may consist of consecutive phases, some of which are repeated. Each phase begins an era:
its barrier 0 is fed by the last tasks of the run before. So the phase's barriers are the same in
every place of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compiler_layer.schedule.tasks import Invocation, MatMulTask, Region, Task, Transfer
from driver_layer.abi.tasks import MAX_BARRIER_SLOTS, MAX_PHYSICAL_BARRIERS

QueueKey = tuple[str, int]
"""``("dma_ddr", port)``, ``("dma_cmx", port)``, ``("dpu", tile)`` or ``("shave", tile)``."""


_START_BYTES = 1 << 14
"""Latency of a transfer, as the bytes that a port could move meanwhile (A)."""


def queues_of(tasks: Sequence[Task], ports: int) -> list[QueueKey]:
    """Return each task's queue: transfers by the memory they read, on the least loaded port.

    Ports are balanced for each op separately, so that equal ops are distributed equally.
    """
    loads: dict[tuple[int, str], list[int]] = {}
    queues: list[QueueKey] = []
    for task in tasks:
        match task.work:
            case Transfer(source=source):
                channel = "dma_cmx" if isinstance(source, Region) else "dma_ddr"
                load = loads.setdefault((task.op, channel), [0] * ports)
                port = load.index(min(load))
                load[port] += _START_BYTES + task.work.target.nbytes
                queues.append((channel, port))
            case MatMulTask(tile=tile):
                queues.append(("dpu", tile))
            case Invocation(tile=tile):
                queues.append(("shave", tile))
    return queues


@dataclass(slots=True)
class Barrier:
    """A virtual barrier; tasks are numbered by their place in the order."""

    producers: tuple[int, ...]
    consumers: list[int]


@dataclass(slots=True)
class Schedule:
    """Tasks of a program or of a phase, with their queues and barriers.

    In a phase, barriers are numbered from its own first one. If another phase follows, the last
    tasks post to the barrier after the last one, which is the first barrier of that phase.
    """

    tasks: Sequence[Task]
    queues: Sequence[QueueKey]
    physical: int
    barriers: list[Barrier] = field(default_factory=list[Barrier])
    waits: list[list[int]] = field(default_factory=list[list[int]])
    posts: list[list[int]] = field(default_factory=list[list[int]])

    def start_after(self, task: int) -> int:
        """Return the number of virtual barriers that must be programmed before a task is issued."""
        return max([*self.waits[task], *self.posts[task]], default=-1) + 1

    @property
    def ending(self) -> list[int]:
        """Tasks that post to the barrier after the last one."""
        behind = len(self.barriers)
        return [task for task, posts in enumerate(self.posts) if behind in posts]


@dataclass(frozen=True, slots=True)
class PhasePosition:
    """Position of a phase in its program: whether it is the first, and the last."""

    first: bool = True
    last: bool = True


ALONE = PhasePosition()


def assign_barriers(
    tasks: Sequence[Task],
    after: Sequence[set[int]],
    physical: int,
    queues: Sequence[QueueKey],
    standing: PhasePosition = ALONE,
) -> Schedule:
    """Assign to each task the barriers that it waits for and feeds.

    Args:
        tasks: in the order in which they are issued.
        after: earlier tasks that each task depends on; ``EARLIER`` for tasks before the phase.
        physical: number of physical barriers, at least 8.
        queues: queue of each task.
        standing: position of the tasks' phase in the program.
    """
    made = Schedule(tasks, queues, min(physical, MAX_PHYSICAL_BARRIERS))
    return _Assigner(made, after, standing).run()


class _Assigner:
    """Assignment of barriers to the tasks of one phase."""

    def __init__(self, made: Schedule, after: Sequence[set[int]], standing: PhasePosition) -> None:
        self._after = after
        self._standing = standing
        self._s = made
        self._s.waits = [[] for _ in made.tasks]
        self._s.posts = [[] for _ in made.tasks]
        self._known: list[dict[QueueKey, int]] = []
        self._last: dict[QueueKey, int] = {}
        self._era_first = 0
        self._era_barriers = 0
        self._before_era: list[int] = []
        """The last task of each queue before the era."""
        self._oldest = 0
        """First task of the previous era; older tasks are not waited for directly."""
        self._shared: dict[tuple[int, ...], int] = {}

    def run(self) -> Schedule:
        final = len(self._s.tasks) - 1 if self._standing.last else None
        if not self._standing.first:
            # The last tasks of the phase before feed this barrier.
            self._s.barriers.append(Barrier((), [0]))
            self._s.waits[0].append(0)
        for task in range(len(self._s.tasks)):
            needed: Iterable[int] = self._after[task]
            if task == final:
                needed = self._last.values()
            elif self._era_is_full():
                needed = {*needed, *self._before_era, self._era_first}
                self._begin_era(task)
            self._add(task, needed)
            self._last[self._s.queues[task]] = task
        if final is None:
            for task in self._needed({}, set(self._last.values())):
                self._s.posts[task].append(len(self._s.barriers))
        else:
            self._s.posts[final].append(len(self._s.barriers))
            self._s.barriers.append(Barrier((final,), []))
        return self._s

    def _era_is_full(self) -> bool:
        era = max(1, self._s.physical // 3)
        return len(self._s.barriers) - self._era_barriers >= era

    def _begin_era(self, task: int) -> None:
        self._oldest, self._era_first = self._era_first, task
        self._era_barriers = len(self._s.barriers)
        self._before_era = list(self._last.values())
        self._shared.clear()

    def _add(self, task: int, needed: Iterable[int]) -> None:
        known: dict[QueueKey, int] = {}
        previous = self._last.get(self._s.queues[task])
        if previous is not None:
            self._learn(known, previous)
        # Before the first task, all earlier phases are done.
        wanted = {self._recent(task, other) for other in needed if task or other >= 0}
        producers = self._needed(known, wanted)
        self._known.append(known)
        if producers:
            self._wait(task, tuple(producers))

    def _needed(self, known: dict[QueueKey, int], wanted: set[int]) -> list[int]:
        """Return the tasks to wait for that no other wait implies; ``known`` is extended."""
        producers: list[int] = []
        for other in sorted(wanted, reverse=True):
            if known.get(self._s.queues[other], -1) < other:
                producers.append(other)
                self._learn(known, other)
        return sorted(producers)

    def _learn(self, known: dict[QueueKey, int], done: int) -> None:
        """Add to ``known`` a finished task, and the tasks known to be done when it started."""
        for queue, task in self._known[done].items():
            if known.get(queue, -1) < task:
                known[queue] = task
        known[self._s.queues[done]] = max(known.get(self._s.queues[done], -1), done)

    def _recent(self, task: int, other: int) -> int:
        """Return the task to wait for; the era's first task stands for tasks that are too old."""
        return self._era_first if other < self._oldest and task != self._era_first else other

    def _wait(self, task: int, producers: tuple[int, ...]) -> None:
        number = self._shared.get(producers)
        if number is not None:
            barrier = self._s.barriers[number]
            if len(producers) + len(barrier.consumers) < MAX_BARRIER_SLOTS:
                barrier.consumers.append(task)
                self._s.waits[task].append(number)
                return
        number = len(self._s.barriers)
        self._shared[producers] = number
        self._s.barriers.append(Barrier(producers, [task]))
        self._s.waits[task].append(number)
        for producer in producers:
            self._s.posts[producer].append(number)
