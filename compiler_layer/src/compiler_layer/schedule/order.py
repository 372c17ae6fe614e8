"""Sequence of steps, with addresses of their CMX buffers and loads ahead of time.

While a step computes, the operands of the next one are loaded as far as they are known and fit:
weights always, activations unless the current step writes them. The results of a step stay in CMX
during the next one if there is room, so that no task waits for their store.

Buffers that are loaded for one step only are placed at the upper end of CMX, all others at the
lower end. So operands that pass through leave no gaps between buffers that stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler_layer.errors import DoesNotFit
from compiler_layer.schedule.cmx import Cmx
from compiler_layer.schedule.tasks import CmxBuffer, Place, Step, Task, Transfer, cmx_buffers
from compiler_layer.schedule.views import Buffer, Space, View


def _is_given(place: Place) -> bool:
    """Return whether no task writes to a place."""
    return isinstance(place, View) and place.buffer.space in (Space.CONSTANT, Space.INPUT)


Pinned = Mapping[int, tuple[int | None, ...]]
"""Loads of a step that run before it, by number, and the offsets of their buffers."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Tasks in the order in which they are issued, and the position of each fence."""

    tasks: list[Task]
    cuts: list[int]


@dataclass(frozen=True, slots=True)
class Fences:
    """The first steps of a block's first and second repetition.

    Between the two fences CMX must end as it began, so that the same tasks can run again.
    Therefore only weights and inputs of the step behind a fence cross it, loaded ahead to the same
    addresses at both.
    """

    first: int
    second: int


def order_steps(steps: Sequence[Step], cmx_bytes: int, fences: Fences | None = None) -> Ordered:
    """Return the tasks of all steps in the order in which they are issued, and place CMX buffers.

    Args:
        steps: in an order in which they can run.
        cmx_bytes: size of CMX on each tile.
        fences: bounds of the steps that can be repeated.

    Raises:
        DoesNotFit: a step's operands are larger than CMX.
    """
    try:
        return _ordered(steps, cmx_bytes, fences)
    except DoesNotFit:
        # Loads ahead may have left gaps that are too small for later buffers.
        _forget_addresses(steps)
        return _Sequencer(steps, cmx_bytes, fences, ahead=False).run()


_ATTEMPTS = 3
"""Maximum number of attempts to load the same weights ahead of both fences."""


def _ordered(steps: Sequence[Step], cmx_bytes: int, fences: Fences | None) -> Ordered:
    pinned: Pinned = {}
    for _ in range(_ATTEMPTS):
        attempt = _Sequencer(steps, cmx_bytes, fences, ahead=True, pinned=pinned)
        ordered = attempt.run()
        if attempt.crossing == pinned:
            return ordered
        pinned = attempt.crossing
        _forget_addresses(steps)
    return _Sequencer(steps, cmx_bytes, fences, ahead=True, pinned=None).run()


def _forget_addresses(steps: Sequence[Step]) -> None:
    for step in steps:
        for buffer in cmx_buffers(step.all_work()):
            buffer.offset = None


class _Sequencer:
    """One attempt, with or without loading ahead.

    Args:
        steps: in an order in which they can run.
        cmx_bytes: size of CMX on each tile.
        fences: bounds of the repeated steps.
        ahead: whether to load ahead at all.
        pinned: loads that cross the fences; None if none may.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        cmx_bytes: int,
        fences: Fences | None,
        ahead: bool,
        pinned: Pinned | None = None,
    ) -> None:
        self._steps = steps
        self._ahead = ahead
        self._fences = [] if fences is None else [fences.first, fences.second]
        self._pinned = pinned
        self._cmx = Cmx(cmx_bytes)
        self._cmx_bytes = cmx_bytes
        self._tasks: list[Task] = []
        self._cuts: list[int] = []
        self.crossing: dict[int, tuple[int | None, ...]] = {}
        """Loads that crossed the second fence."""
        self._buffers = [cmx_buffers(step.all_work()) for step in steps]
        last = {buffer: at for at, used in enumerate(self._buffers) for buffer in used}
        self._dying: list[list[CmxBuffer]] = [[] for _ in steps]
        for buffer, at in last.items():
            self._dying[at].append(buffer)
        self._passing = self._loaded_for_one_step(last)
        self._resting: list[CmxBuffer] = []
        self._issued: set[int] = set()
        self._written = self._last_writers()

    def run(self) -> Ordered:
        for at, step in enumerate(self._steps):
            if at in self._fences:
                self._cross_fence(at)
            self._place(at)
            for load in step.loads:
                self._issue(load, step.op)
            if self._ahead and at + 1 < len(self._steps):
                self._load_ahead(at)
            self._tasks += [Task(work, step.op) for work in (*step.work, *step.stores)]
            self._end(at)
        return Ordered(self._tasks, self._cuts)

    def _cross_fence(self, at: int) -> None:
        """Release resting buffers; before the first repetition, load the pinned buffers."""
        self._cmx.release(self._resting)
        self._resting = []
        if at == self._fences[0]:
            for number, offsets in (self._pinned or {}).items():
                load = self._steps[at].loads[number]
                self._cmx.pin(cmx_buffers([load]), offsets)
                self._issue(load, self._steps[at].op)
        self._cuts.append(len(self._tasks))

    def _place(self, at: int) -> None:
        """Place a step's buffers, next to the results of the last step if possible."""
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
        """Free the buffers that the step used last; its stored results are freed one step later."""
        if self._ahead:
            stored = cmx_buffers(self._steps[at].stores)
            self._resting = [buffer for buffer in self._dying[at] if buffer in stored]
        self._cmx.release([buffer for buffer in self._dying[at] if buffer not in self._resting])

    def _issue(self, load: Transfer, op: int) -> None:
        if id(load) not in self._issued:
            self._issued.add(id(load))
            self._tasks.append(Task(load, op))

    def _load_ahead(self, at: int) -> None:
        """Load the operands of the next step that no step from here on writes.

        A load that would leave no room for the rest of that step is postponed.
        """
        loads = [load for load in self._steps[at + 1].loads if self._may_come_early(load, at)]
        placed = [buffer for buffer in cmx_buffers(loads) if buffer.offset is None]
        while placed and not self._has_room(placed, at):
            placed.pop()
        for load in loads:
            if all(buffer in placed for buffer in cmx_buffers([load])):
                self._issue(load, self._steps[at + 1].op)
                if at + 1 in self._fences:
                    self._note_crossing(load, self._steps[at + 1])

    def _note_crossing(self, load: Transfer, step: Step) -> None:
        number = next(number for number, one in enumerate(step.loads) if one is load)
        self.crossing[number] = tuple(buffer.offset for buffer in cmx_buffers([load]))

    def _may_come_early(self, load: Transfer, at: int) -> bool:
        if at + 1 in self._fences:
            at_second = at + 1 == self._fences[1] and self._pinned is not None
            return at_second and _is_given(load.source)
        return not (isinstance(load.source, View) and self._writer(load.source.buffer) >= at)

    def _has_room(self, ahead: list[CmxBuffer], at: int) -> bool:
        """Place buffers of the next step if its other buffers fit once the current step ends."""
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
        """Return the last step that writes each DDR buffer."""
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
