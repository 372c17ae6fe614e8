"""Check of a schedule, independent of its construction.

No code is shared with placement or barrier assignment: addresses are compared byte by byte, and
barriers are simulated as the management core counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from compiler_layer.schedule.barriers import Schedule
from compiler_layer.schedule.tasks import CmxBuffer, Task, regions_of
from compiler_layer.schedule.views import Buffer
from driver_layer.abi.tasks import MAX_BARRIER_SLOTS


def check_schedule(schedule: Schedule, after: Sequence[set[int]], cmx_bytes: int) -> None:
    """Check that a schedule is sound.

    Args:
        schedule: tasks with addresses and barriers.
        after: earlier tasks that each task depends on.
        cmx_bytes: size of CMX on each tile.

    Raises:
        AssertionError: buffers with overlapping lifetimes overlap or exceed CMX, or barriers are
            miscounted or deadlock; the message names the place.
    """
    check_cmx(schedule.tasks, cmx_bytes)
    check_barriers(schedule, after)


def check_cmx(tasks: Sequence[Task], cmx_bytes: int) -> None:
    """Check that no two CMX buffers with overlapping lifetimes share a byte."""
    alive: dict[CmxBuffer, list[int]] = {}
    for at, task in enumerate(tasks):
        for region, _, _ in regions_of(task.work):
            alive.setdefault(region.buffer, [at, at])[1] = at
    buffers = sorted(alive.items(), key=lambda item: item[1][0])
    for index, (one, span) in enumerate(buffers):
        assert one.offset is not None, f"{one.name} has no address"
        assert 0 <= one.offset <= cmx_bytes - one.nbytes, f"{one.name} exceeds CMX"
        for other, later in buffers[index + 1 :]:
            if later[0] > span[1]:
                break
            assert not _overlap(one, other), f"{one.name} and {other.name} overlap"


def _overlap(a: CmxBuffer, b: CmxBuffer) -> bool:
    assert a.offset is not None
    assert b.offset is not None
    shared = set(a.tiles) & set(b.tiles)
    return bool(shared) and a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes


def check_ddr(buffers: Sequence[Buffer], spans: dict[Buffer, tuple[int, int]]) -> None:
    """Check that no two scratch buffers with overlapping lifetimes share a byte."""
    for index, one in enumerate(buffers):
        for other in buffers[index + 1 :]:
            a, b = spans[one], spans[other]
            together = a[0] <= b[1] and b[0] <= a[1]
            first, second = sorted((one, other), key=lambda buffer: buffer.offset)
            apart = first.offset + first.nbytes <= second.offset
            assert apart or not together, f"{one.name} and {other.name} overlap"


def check_barriers(schedule: Schedule, after: Sequence[set[int]]) -> None:
    """Check barrier counts, and simulate that every task is issued, after its dependencies."""
    produced, consumed = Counter[int](), Counter[int]()
    for waits, posts in zip(schedule.waits, schedule.posts, strict=True):
        consumed.update(waits)
        produced.update(posts)
    final = len(schedule.barriers) - 1
    for number, barrier in enumerate(schedule.barriers):
        slots = len(barrier.producers) + len(barrier.consumers)
        assert produced[number] == len(barrier.producers) > 0, f"producers of barrier {number}"
        assert consumed[number] == len(barrier.consumers), f"consumers of barrier {number}"
        assert slots <= MAX_BARRIER_SLOTS, f"barrier {number} has {slots} slots"
        assert bool(barrier.consumers) != (number == final), f"barrier {number} lacks consumers"
    issued: set[int] = set()
    for task in _simulate(schedule):
        assert after[task] <= issued, f"task {task} does not wait for {after[task] - issued}"
        issued.add(task)
    assert len(issued) == len(schedule.tasks), f"deadlock after {len(issued)} tasks"


def _simulate(schedule: Schedule) -> Iterator[int]:
    """Yield tasks in an order in which the barriers let them run, until none can run.

    The last queue runs first, so that the order differs from the intended one as much as possible.
    """
    producers = [len(barrier.producers) for barrier in schedule.barriers]
    consumers = [len(barrier.consumers) for barrier in schedule.barriers]
    queues: dict[object, list[int]] = {}
    for task in reversed(range(len(schedule.tasks))):
        queues.setdefault(schedule.queues[task], []).append(task)
    finished = 0  # barriers that all their tasks have passed, without a gap from the first
    progress = True
    while progress:
        progress = False
        for queue in reversed(list(queues.values())):
            while queue and _may_issue(schedule, queue[-1], producers, finished):
                task = queue.pop()
                for barrier in schedule.posts[task]:
                    producers[barrier] -= 1
                for barrier in schedule.waits[task]:
                    consumers[barrier] -= 1
                while finished < len(producers) and producers[finished] == consumers[finished] == 0:
                    finished += 1
                yield task
                progress = True


def _may_issue(schedule: Schedule, task: int, producers: Sequence[int], finished: int) -> bool:
    """Return whether a task's barriers are programmed, and those it waits for are complete."""
    last = max([*schedule.waits[task], *schedule.posts[task]], default=-1)
    programmed = last < finished + schedule.physical
    return programmed and all(producers[barrier] == 0 for barrier in schedule.waits[task])
