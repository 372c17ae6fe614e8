"""Turns dependencies between tasks into barriers that the device can count.

How it works. A queue runs its tasks in order, so a task needs a barrier only for what other queues
must have done, and not even for that if it follows from something it waits for anyway: for each
task we track what is known to be done in every queue when it starts.

Physical barriers are few: virtual barrier v sits in physical barrier v mod n, after v - n has been
consumed. The management core therefore holds a task until all virtual barriers up to its own are
programmed. That cannot deadlock as long as no barrier is fed long before it is made. So time is
cut into *eras* of n / 3 barriers. The first task of an era waits for all that was issued before the
era before it, which mostly is done by then; whoever needs something as old as that waits for this
task instead. So a barrier is fed from its own era or the one before, and the one that sat in its
place is two eras older than those who feed it.

A program may consist of stretches, one after the other, some of which are repeated. Each begins an
era: its barrier 0 is fed by the last tasks of whatever runs before, so that its own barriers are
the same wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compiler_layer.schedule.tasks import Invocation, Product, Region, Task, Transfer
from driver_layer.abi.tasks import MAX_BARRIER_SLOTS, MAX_PHYSICAL_BARRIERS

QueueKey = tuple[str, int]
"""``("dma_ddr", port)``, ``("dma_cmx", port)``, ``("dpu", tile)`` or ``("shave", tile)``."""


_START_BYTES = 1 << 14
"""What a port could have moved while a transfer starts: its latency, as bytes (A)."""


def queues_of(tasks: Sequence[Task], ports: int) -> list[QueueKey]:
    """The queue that each task goes to: transfers by what they read, to the port with least to do.

    Ports are balanced for each op by itself, so that equal ops are shared out equally.
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
            case Product(tile=tile):
                queues.append(("dpu", tile))
            case Invocation(tile=tile):
                queues.append(("shave", tile))
    return queues


@dataclass(slots=True)
class Barrier:
    """A virtual barrier: tasks by their place in the order."""

    producers: tuple[int, ...]
    consumers: list[int]


@dataclass(slots=True)
class Schedule:
    """The tasks of a program, or of a stretch of it, with their queues and barriers.

    In a stretch barriers count from its own first one. The last tasks of one that something
    follows post to the barrier behind its last one, which is the first of what follows.
    """

    tasks: Sequence[Task]
    queues: Sequence[QueueKey]
    physical: int
    barriers: list[Barrier] = field(default_factory=list[Barrier])
    waits: list[list[int]] = field(default_factory=list[list[int]])
    posts: list[list[int]] = field(default_factory=list[list[int]])

    def start_after(self, task: int) -> int:
        """How many virtual barriers must be programmed before a task is issued."""
        return max([*self.waits[task], *self.posts[task]], default=-1) + 1

    @property
    def ending(self) -> list[int]:
        """The tasks that post to the barrier behind the last one."""
        behind = len(self.barriers)
        return [task for task, posts in enumerate(self.posts) if behind in posts]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a stretch stands: whether something runs before it, and after it."""

    first: bool = True
    last: bool = True


ALONE = Standing()


def assign_barriers(
    tasks: Sequence[Task],
    after: Sequence[set[int]],
    physical: int,
    queues: Sequence[QueueKey],
    standing: Standing = ALONE,
) -> Schedule:
    """Give each task the barriers it waits for and feeds.

    Args:
        tasks: in the order in which they are issued.
        after: for each the earlier tasks it depends on; ``EARLIER`` for those before the stretch.
        physical: how many physical barriers there are, at least 8.
        queues: the queue of each task.
        standing: where the tasks stand in the program.
    """
    made = Schedule(tasks, queues, min(physical, MAX_PHYSICAL_BARRIERS))
    return _Assigner(made, after, standing).run()


class _Assigner:
    """Walks the tasks of one stretch."""

    def __init__(self, made: Schedule, after: Sequence[set[int]], standing: Standing) -> None:
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
        """The first task of the era before: what is older is not waited for directly."""
        self._shared: dict[tuple[int, ...], int] = {}

    def run(self) -> Schedule:
        final = len(self._s.tasks) - 1 if self._standing.last else None
        if not self._standing.first:
            # What runs before feeds it.
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
        known = self._known_at_start(task)
        # Before the first task all that ran before is done.
        wanted = {self._recent(task, other) for other in needed if task or other >= 0}
        producers = self._needed(known, wanted)
        self._known.append(known)
        if producers:
            self._wait(task, tuple(producers))

    def _needed(self, known: dict[QueueKey, int], wanted: set[int]) -> list[int]:
        """Of the tasks to wait for those that do not follow from others; ``known`` grows."""
        producers: list[int] = []
        for other in sorted(wanted, reverse=True):
            if known.get(self._s.queues[other], -1) < other:
                producers.append(other)
                self._learn(known, other)
        return sorted(producers)

    def _known_at_start(self, task: int) -> dict[QueueKey, int]:
        previous = self._last.get(self._s.queues[task])
        known: dict[QueueKey, int] = {}
        if previous is not None:
            self._learn(known, previous)
        return known

    def _learn(self, known: dict[QueueKey, int], done: int) -> None:
        """A task that is done has seen done all it knew of."""
        for queue, task in self._known[done].items():
            if known.get(queue, -1) < task:
                known[queue] = task
        known[self._s.queues[done]] = max(known.get(self._s.queues[done], -1), done)

    def _recent(self, task: int, other: int) -> int:
        """What to wait for instead of something too old."""
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
