"""Puts steps in sequence: gives their CMX buffers addresses, and loads ahead of time.

While a step computes, what the next one needs is loaded beside it, as far as it is known by then
and fits: weights always, activations unless the step itself makes them. What a step wrote keeps its
place during the next one if there is room, so that nobody waits for it to be stored.

What is loaded for one step only lies at the upper end of CMX, everything else at the lower end: so
operands that pass by leave no gaps between those that stay.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from compiler_layer.errors import DoesNotFit
from compiler_layer.schedule.tasks import CmxBuffer, Step, Task, Transfer, cmx_buffers
from compiler_layer.schedule.views import Buffer, Space, View

ALIGNMENT = 64
"""CMX buffers begin at multiples of this."""


class _Cmx:
    """The buffers that live in CMX at a moment, and where."""

    def __init__(self, nbytes: int) -> None:
        self._nbytes = nbytes
        self._live: dict[CmxBuffer, None] = {}

    def place(self, buffers: Sequence[CmxBuffer], passing: Collection[CmxBuffer]) -> bool:
        """Give all buffers addresses, or none of them; ``passing`` ones at the upper end."""
        for number, buffer in enumerate(buffers):
            buffer.offset = self._first_fit(buffer, buffer in passing)
            if buffer.offset is None:
                self.withdraw(buffers[:number])
                return False
            self._live[buffer] = None
        return True

    def withdraw(self, buffers: Sequence[CmxBuffer]) -> None:
        """Take addresses back: nothing has used them yet."""
        self.release(buffers)
        for buffer in buffers:
            buffer.offset = None

    def release(self, buffers: Sequence[CmxBuffer]) -> None:
        """Free what is not needed any more."""
        for buffer in buffers:
            del self._live[buffer]

    def keep(self, buffers: Sequence[CmxBuffer]) -> None:
        """Undo a release."""
        self._live.update(dict.fromkeys(buffers))

    def _first_fit(self, buffer: CmxBuffer, at_upper_end: bool) -> int | None:
        tiles = set(buffer.tiles)
        taken = sorted(_extent(other) for other in self._live if not tiles.isdisjoint(other.tiles))
        return (self._from_above if at_upper_end else self._from_below)(taken, buffer.nbytes)

    def _from_below(self, taken: Sequence[tuple[int, int]], nbytes: int) -> int | None:
        offset = 0
        for begin, end in taken:
            if offset + nbytes <= begin:
                break
            offset = max(offset, -(-end // ALIGNMENT) * ALIGNMENT)
        return offset if offset + nbytes <= self._nbytes else None

    def _from_above(self, taken: Sequence[tuple[int, int]], nbytes: int) -> int | None:
        offset = (self._nbytes - nbytes) // ALIGNMENT * ALIGNMENT
        for begin, end in sorted(taken, key=lambda extent: extent[1], reverse=True):
            if end <= offset:
                break
            offset = min(offset, (begin - nbytes) // ALIGNMENT * ALIGNMENT)
        return offset if offset >= 0 else None


def _extent(buffer: CmxBuffer) -> tuple[int, int]:
    assert buffer.offset is not None  # only placed buffers are live
    return buffer.offset, buffer.offset + buffer.nbytes


def order_steps(steps: Sequence[Step], cmx_bytes: int) -> list[Task]:
    """Give the tasks of all steps in the order in which they are issued, and CMX its addresses.

    Args:
        steps: in an order in which they can run.
        cmx_bytes: what there is on each tile.

    Raises:
        DoesNotFit: a step's operands are larger than CMX.
    """
    try:
        return _Sequencer(steps, cmx_bytes, ahead=True).run()
    except DoesNotFit:
        # What was loaded ahead may have left gaps too small for what came after.
        for step in steps:
            for buffer in cmx_buffers(step.all_work()):
                buffer.offset = None
        return _Sequencer(steps, cmx_bytes, ahead=False).run()


class _Sequencer:
    """One attempt, with or without loading ahead."""

    def __init__(self, steps: Sequence[Step], cmx_bytes: int, ahead: bool) -> None:
        self._steps = steps
        self._ahead = ahead
        self._cmx = _Cmx(cmx_bytes)
        self._cmx_bytes = cmx_bytes
        self._tasks: list[Task] = []
        self._buffers = [cmx_buffers(step.all_work()) for step in steps]
        last = {buffer: at for at, used in enumerate(self._buffers) for buffer in used}
        self._dying: list[list[CmxBuffer]] = [[] for _ in steps]
        for buffer, at in last.items():
            self._dying[at].append(buffer)
        self._passing = self._loaded_for_one_step(last)
        self._resting: list[CmxBuffer] = []
        self._issued: set[int] = set()
        self._written = self._last_writers()

    def run(self) -> list[Task]:
        for at, step in enumerate(self._steps):
            self._place(at)
            for load in step.loads:
                self._issue(load, step.op)
            if self._ahead and at + 1 < len(self._steps):
                self._load_ahead(at)
            self._tasks += [Task(work, step.op) for work in (*step.work, *step.stores)]
            self._end(at)
        return self._tasks

    def _place(self, at: int) -> None:
        """Place what the step needs, beside what the last one wrote if possible."""
        missing = self._missing(at)
        placed = self._cmx.place(missing, self._passing)
        self._cmx.release(self._resting)
        self._resting = []
        if not placed and not self._cmx.place(missing, self._passing):
            need = sum(buffer.nbytes for buffer in self._buffers[at])
            raise DoesNotFit(f"a step of op {self._steps[at].op}", need, self._cmx_bytes)

    def _missing(self, at: int) -> list[CmxBuffer]:
        return [buffer for buffer in self._buffers[at] if buffer.offset is None]

    def _end(self, at: int) -> None:
        """Free what the step was the last to use; what it stores, one step later."""
        if self._ahead:
            stored = cmx_buffers(self._steps[at].stores)
            self._resting = [buffer for buffer in self._dying[at] if buffer in stored]
        self._cmx.release([buffer for buffer in self._dying[at] if buffer not in self._resting])

    def _issue(self, load: Transfer, op: int) -> None:
        if id(load) not in self._issued:
            self._issued.add(id(load))
            self._tasks.append(Task(load, op))

    def _load_ahead(self, at: int) -> None:
        """Load what the next step needs, as far as no step from here on still has to write it.

        What would leave no room for the rest of that step is not loaded yet.
        """
        loads = [load for load in self._steps[at + 1].loads if self._is_known(load, at)]
        placed = [buffer for buffer in cmx_buffers(loads) if buffer.offset is None]
        while placed and not self._has_room(placed, at):
            placed.pop()
        for load in loads:
            if all(buffer in placed for buffer in cmx_buffers([load])):
                self._issue(load, self._steps[at + 1].op)

    def _is_known(self, load: Transfer, at: int) -> bool:
        return not (isinstance(load.source, View) and self._writer(load.source.buffer) >= at)

    def _has_room(self, ahead: list[CmxBuffer], at: int) -> bool:
        """Place buffers of the next step, if the rest of it can follow when this one is over."""
        if not self._cmx.place(ahead, self._passing):
            return False
        rest, dying = self._missing(at + 1), self._dying[at]
        self._cmx.release(dying)
        fits = self._cmx.place(rest, self._passing)
        if fits:
            self._cmx.withdraw(rest)
        self._cmx.keep(dying)
        if not fits:
            self._cmx.withdraw(ahead)
        return fits

    def _writer(self, buffer: Buffer) -> int:
        return -1 if buffer.space is Space.CONSTANT else self._written.get(buffer, -1)

    def _last_writers(self) -> dict[Buffer, int]:
        """For each DDR buffer the last step that writes it."""
        return {
            work.target.buffer: at
            for at, step in enumerate(self._steps)
            for work in step.all_work()
            if isinstance(work, Transfer) and isinstance(work.target, View)
        }

    def _loaded_for_one_step(self, last: dict[CmxBuffer, int]) -> set[CmxBuffer]:
        return {
            buffer
            for at, step in enumerate(self._steps)
            for buffer in cmx_buffers(step.loads)
            if last[buffer] == at
        }
