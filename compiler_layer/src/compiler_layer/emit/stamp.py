"""Barriers in task records, for all runs of a phase together.

Virtual barrier v uses physical barrier v mod n. From one run to the next, the numbers of a phase
grow by its number of barriers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from compiler_layer.emit.records import TaskList
from compiler_layer.schedule.barriers import Schedule
from compiler_layer.schedule.program import ScheduledProgram
from driver_layer.abi import tasks
from driver_layer.abi.layout import RecordArray

Ints = npt.NDArray[np.int64]


class Stamps:
    """Barriers that the tasks of a phase wait for and post to.

    Args:
        schedule: the phase's schedule.
        base: number of the first barrier in the phase's first run.
    """

    def __init__(self, schedule: Schedule, base: int) -> None:
        self._waits, self._posts = _pairs(schedule.waits), _pairs(schedule.posts)
        after = [schedule.start_after(task) for task in range(len(schedule.tasks))]
        self._after = np.array(after, np.int64)
        """Number of barriers to program before each task is issued; 0 for one without barriers."""
        self._base, self._count = base, len(schedule.barriers)
        self._physical = schedule.physical

    def stamp(self, records: RecordArray, listed: TaskList, runs: int) -> None:
        """Write barriers into records [runs, rows].

        Args:
            records: records of a list whose tasks have barriers.
            listed: the list, with the task of each row.
            runs: number of runs of the phase.
        """
        bases = self._base + self._count * np.arange(runs)[:, None]
        rows = np.full(len(self._after), -1)
        rows[listed.tasks] = np.arange(len(listed.tasks))
        waits, posts = (
            self._masks(pairs, rows, len(listed.tasks), bases)
            for pairs in (self._waits, self._posts)
        )
        after = self._after[listed.tasks]
        after = np.where(after > 0, after + bases, 0)
        if listed.kind == tasks.DMA_TASK:
            fields = records["descriptor"]
            fields["consumer_lo"], fields["consumer_hi"] = waits[..., 0], waits[..., 1]
            fields["producer_lo"], fields["producer_hi"] = posts[..., 0], posts[..., 1]
            fields = records
        else:
            fields = records["scheduling"]
            fields["wait_mask"], fields["post_mask"] = waits, posts
        fields["start_after"] = fields["clean_after"] = after

    def _masks(self, pairs: Ints, rows: Ints, count: int, bases: Ints) -> npt.NDArray[np.uint64]:
        """Return masks [runs, rows, 2] of physical barriers, 64 per word."""
        masks = np.zeros((len(bases), count, 2), np.uint64)
        pairs = pairs[rows[pairs[:, 0]] >= 0]
        real = (pairs[:, 1] + bases) % self._physical
        places = (np.arange(len(bases))[:, None], rows[pairs[:, 0]][None], real // 64)
        np.bitwise_or.at(masks, places, np.uint64(1) << (real % 64).astype(np.uint64))
        return masks


def _pairs(barriers: list[list[int]]) -> Ints:
    found = [(task, barrier) for task, numbers in enumerate(barriers) for barrier in numbers]
    return np.array(found, np.int64).reshape(-1, 2)


def barrier_configs(program: ScheduledProgram) -> RecordArray:
    """Return a program's virtual barriers: counts, and the next user of the same physical one."""
    producers: list[int] = []
    consumers: list[int] = []
    ending = 0
    for phase in program.phases:
        made = phase.schedule.barriers
        own = [len(barrier.producers) for barrier in made]
        feeding = len(phase.schedule.ending)
        for _ in phase.runs:
            # The first barrier of a phase may have no producers: the phase before feeds it.
            producers += [number or ending for number in own]
            consumers += [len(barrier.consumers) for barrier in made]
            ending = feeding
    count, physical = len(producers), program.physical
    numbers = np.arange(count)
    configs = np.zeros(count, tasks.BARRIER_CONFIG)
    following = np.where(numbers + physical < count, numbers + physical, -1)
    columns = (following, producers, consumers, numbers % physical)
    for name, column in zip(configs.dtype.names or (), columns, strict=True):
        configs[name] = column
    return configs
