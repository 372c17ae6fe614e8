"""A scheduled program as one list of tasks, as the device runs it.

The compiler does not use it, because it emits repeated tasks as arrays. Checks use it, and the
arrays must agree with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compiler_layer.schedule.barriers import Barrier, Schedule
from compiler_layer.schedule.program import Phase, Run, ScheduledProgram
from compiler_layer.schedule.tasks import (
    CmxBuffer,
    MatMulTask,
    Place,
    Region,
    Task,
    Transfer,
    Work,
    cmx_buffers,
)
from compiler_layer.schedule.unfold import substituted
from compiler_layer.schedule.views import Buffer, Space, View


def expanded(program: ScheduledProgram) -> Schedule:
    """Return all tasks of a program with their barriers; repeated tasks once for each run."""
    tasks: list[Task] = []
    whole = Schedule(tasks, [], program.physical)
    for number, phase in enumerate(program.phases):
        earlier = _touched(program.phases[:number])
        later = _touched(program.phases[number + 1 :])
        before: dict[_Bytes, CmxBuffer] = {}
        for time, run in enumerate(phase.runs):
            _add_barriers(whole, phase.schedule, len(tasks))
            rest = later if time == len(phase.runs) - 1 else None
            copier = _Copier(run, earlier, rest, before if time else None)
            tasks += [copier.task(task) for task in phase.schedule.tasks]
            whole.queues = [*whole.queues, *phase.schedule.queues]
            before = {
                _bytes(copier.cmx[buffer]): copier.cmx[buffer]
                for buffer in copier.cmx
                if buffer in later
            }
    return whole


def _add_barriers(whole: Schedule, part: Schedule, before: int) -> None:
    """Append the barriers of a run; ``before`` is the number of tasks before it."""
    base = len(whole.barriers)
    whole.waits += [[base + barrier for barrier in waits] for waits in part.waits]
    whole.posts += [[base + barrier for barrier in posts] for posts in part.posts]
    for number, barrier in enumerate(part.barriers):
        producers = tuple(before + task for task in barrier.producers)
        if not producers and number == 0:
            # The first barrier of a later phase: tasks before it state that they feed it.
            producers = tuple(task for task in range(before) if base in whole.posts[task])
        whole.barriers.append(Barrier(producers, [before + task for task in barrier.consumers]))


def _touched(phases: Sequence[Phase]) -> set[CmxBuffer | Buffer]:
    works = [task.work for one in phases for task in one.schedule.tasks]
    moved = [work for work in works if isinstance(work, Transfer)]
    places = [place for work in moved for place in (work.source, work.target)]
    return {*cmx_buffers(works), *(place.buffer for place in places if isinstance(place, View))}


_Bytes = tuple[int | None, tuple[int, ...]]


def _bytes(buffer: CmxBuffer) -> _Bytes:
    return buffer.offset, buffer.tiles


@dataclass(slots=True)
class _Copier:
    """Copier of tasks for one run; buffers that only this run touches are copied.

    ``earlier`` are buffers that earlier phases use; ``rest`` are buffers that later phases use, if
    this is the last run. ``before``, if set, has the buffers that the previous run loaded for this
    one: the same bytes that, in the first run, an earlier phase loaded.
    """

    run: Run
    earlier: Collection[CmxBuffer | Buffer]
    rest: Collection[CmxBuffer | Buffer] | None
    before: Mapping[_Bytes, CmxBuffer] | None
    cmx: dict[CmxBuffer, CmxBuffer] = field(default_factory=dict[CmxBuffer, CmxBuffer])
    scratch: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])

    def task(self, task: Task) -> Task:
        """Return a task as this run executes it."""
        return Task(self._work(task.work), task.op + self.run.ops)

    def _work(self, work: Work) -> Work:
        match work:
            case Transfer():
                rows = None if work.rows is None else self._region(work.rows)
                source, target = self._place(work.source), self._place(work.target)
                return replace(work, source=source, target=target, rows=rows)
            case MatMulTask():
                tables = work.tables
                names = ("scales", "zeros", "row_scales")
                found = {name: getattr(tables, name) for name in names}
                copied = {n: self._region(r) for n, r in found.items() if r is not None}
                return replace(
                    work,
                    act=self._region(work.act),
                    weight=self._region(work.weight),
                    out=self._region(work.out),
                    tables=replace(tables, **copied),
                )
            case _:
                windows = [replace(w, region=self._region(w.region)) for w in work.windows]
                return replace(work, windows=tuple(windows))

    def _place(self, place: Place) -> Place:
        if isinstance(place, Region):
            return self._region(place)
        view = substituted(place, self.run.buffers)
        if place.buffer in self.run.buffers or view.buffer.space is not Space.SCRATCH:
            return view
        if view.buffer in self.earlier or self.rest is not None:
            return view
        copy = self.scratch.setdefault(view.buffer, replace(view.buffer))
        return replace(view, buffer=copy)

    def _region(self, region: Region) -> Region:
        buffer = region.buffer
        if buffer not in self.cmx:
            self.cmx[buffer] = self._cmx_buffer(buffer)
        return replace(region, buffer=self.cmx[buffer])

    def _cmx_buffer(self, buffer: CmxBuffer) -> CmxBuffer:
        if buffer in self.earlier:
            return buffer if self.before is None else self.before[_bytes(buffer)]
        return replace(buffer) if self.rest is None else buffer
