"""Dependencies between tasks, from the bytes that each reads and writes.

Two tasks that touch the same bytes keep their order if one of them writes. Stores of one op to DDR
are disjoint, even if the spans that describe them interleave.
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from compiler_layer.schedule.tasks import Task, Transfer, regions_of
from compiler_layer.schedule.views import Space, View


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes ``begin`` to ``end`` of a memory; accesses with the same owner do not conflict."""

    memory: Hashable
    begin: int
    end: int
    write: bool
    owner: int


def _is_read_only(view: View) -> bool:
    space = view.buffer.space
    return space is Space.CONSTANT or (space is Space.INPUT and view.buffer.shares is None)


def accesses(index: int, task: Task) -> Iterator[Access]:
    """Yield the accesses of a task in CMX and DDR.

    Constants and inputs are skipped: no task writes them, except variables that are updated in
    place.
    """
    for region, tiles, write in regions_of(task.work):
        begin, end = region.span
        base = region.buffer.offset
        assert base is not None  # placed by ``schedule.order``
        for tile in tiles:
            yield Access(("cmx", tile), base + begin, base + end, write, ~index)
    if isinstance(task.work, Transfer):
        for place, write in ((task.work.source, False), (task.work.target, True)):
            if isinstance(place, View) and not _is_read_only(place):
                yield _ddr_access(place, write, task.op)


def _ddr_access(view: View, write: bool, op: int) -> Access:
    begin, end = view.span
    if view.buffer.space is Space.SCRATCH:
        base = view.buffer.offset
        return Access("scratch", base + begin, base + end, write, op)
    buffer = view.buffer.shares or view.buffer
    return Access((buffer.space, buffer.index), begin, end, write, op)


Latest = dict[Hashable, int]
"""Latest task per kind (its queue); for the exact history each task is its own kind."""


_NOBODY = -(1 << 62)
"""Owner of bytes that have not been written yet."""

EARLIER = -1
"""Stand-in for all tasks of earlier phases."""


@dataclass(slots=True)
class _Segment:
    """Bytes with the same last writers, and the same readers since."""

    begin: int
    end: int
    owner: int
    writers: Latest = field(default_factory=Latest)
    readers: Latest = field(default_factory=Latest)
    before: Latest = field(default_factory=Latest)
    """Users of the bytes before the owner's first write; all its writers must follow them."""


class _Memory:
    """History of one memory, as segments in order.

    Args:
        past: writers of bytes that no segment covers, if any.
    """

    def __init__(self, past: Latest) -> None:
        self._past = past
        self._begins: list[int] = []
        self._segments: list[_Segment] = []

    def touch(self, task: int, kind: Hashable, access: Access) -> Latest:
        """Record an access; return the tasks that it must follow."""
        after = Latest()
        covering = self._covering(access.begin, access.end)
        for segment in covering:
            own = segment.owner == access.owner
            if not own:
                _merge(after, segment.writers)
            if not access.write:
                segment.readers[kind] = task
                continue
            if not own:
                segment.before = dict(segment.writers)
                _merge(segment.before, segment.readers)
                segment.owner = access.owner
                segment.writers, segment.readers = Latest(), Latest()
            _merge(after, segment.before)
            segment.writers[kind] = task
        return after

    def join(self, access: Access) -> None:
        """Merge the segments that an access covers, if one owner wrote them all."""
        low = bisect.bisect_left(self._begins, access.begin)
        high = bisect.bisect_left(self._begins, access.end)
        parts = self._segments[low:high]
        if len(parts) < 2 or any(part.owner != parts[0].owner for part in parts):
            return
        whole = _Segment(parts[0].begin, parts[-1].end, parts[0].owner)
        for part in parts:
            _merge(whole.writers, part.writers)
            _merge(whole.readers, part.readers)
            _merge(whole.before, part.before)
        self._segments[low:high] = [whole]
        self._begins[low:high] = [whole.begin]

    def _covering(self, begin: int, end: int) -> list[_Segment]:
        """Return segments that exactly cover a span, splitting and adding segments as needed."""
        self._cut(begin)
        self._cut(end)
        low = bisect.bisect_left(self._begins, begin)
        high = bisect.bisect_left(self._begins, end)
        covering: list[_Segment] = []
        at = begin
        for segment in self._segments[low:high]:
            if at < segment.begin:
                covering.append(self._untouched(at, segment.begin))
            covering.append(segment)
            at = segment.end
        if at < end:
            covering.append(self._untouched(at, end))
        self._segments[low:high] = covering
        self._begins[low:high] = [segment.begin for segment in covering]
        return covering

    def _untouched(self, begin: int, end: int) -> _Segment:
        return _Segment(begin, end, _NOBODY, writers=dict(self._past))

    def _cut(self, at: int) -> None:
        index = bisect.bisect_right(self._begins, at) - 1
        if index < 0:
            return
        segment = self._segments[index]
        if segment.begin < at < segment.end:
            right = _Segment(
                at,
                segment.end,
                segment.owner,
                dict(segment.writers),
                dict(segment.readers),
                dict(segment.before),
            )
            segment.end = at
            self._segments.insert(index + 1, right)
            self._begins.insert(index + 1, at)


def _merge(into: Latest, more: Latest) -> None:
    for kind, task in more.items():
        if into.get(kind, EARLIER - 1) < task:
            into[kind] = task


def dependencies(
    tasks: Sequence[Task], queues: Sequence[Hashable] | None = None, first: bool = True
) -> list[set[int]]:
    """Return, for each task, the earlier tasks that must be done before it starts.

    Args:
        tasks: in the order in which they are issued.
        queues: queue of each task. If given, only the latest task of each queue is returned,
            because a queue's tasks end in order, and reads merge segments: much faster, and never
            less than needed.
        first: True if no phase runs before. Otherwise the first use of any bytes also depends on
            ``EARLIER``, because earlier phases may have used them.
    """
    past: Latest = {} if first else {EARLIER: EARLIER}
    memories: dict[Hashable, _Memory] = {}
    found: list[set[int]] = []
    for index, task in enumerate(tasks):
        kind = index if queues is None else queues[index]
        after = Latest()
        for access in accesses(index, task):
            memory = memories.setdefault(access.memory, _Memory(past))
            _merge(after, memory.touch(index, kind, access))
            if queues is not None and not access.write:
                memory.join(access)
        found.append(set(after.values()) - {index})
    return found
