"""Puts steps in sequence: gives their CMX buffers addresses, and loads ahead of time.

While a step computes, what the next one needs is loaded beside it, as far as it is known by then
and fits: weights always, activations unless the step itself makes them.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.errors import DoesNotFit
from compiler_layer.schedule.tasks import CmxBuffer, Step, Task, Transfer, cmx_buffers
from compiler_layer.schedule.views import Buffer, Space, View

ALIGNMENT = 64
"""CMX buffers begin at multiples of this."""


class _Cmx:
    """The buffers that live in CMX at a moment, and where."""

    def __init__(self, nbytes: int) -> None:
        self._nbytes = nbytes
        self._live: list[CmxBuffer] = []

    def place(self, buffers: Sequence[CmxBuffer]) -> bool:
        """Give all buffers addresses, or none of them."""
        placed: list[CmxBuffer] = []
        for buffer in buffers:
            offset = self._first_fit(buffer)
            if offset is None:
                for other in placed:
                    other.offset = None
                    self._live.remove(other)
                return False
            buffer.offset = offset
            self._live.append(buffer)
            placed.append(buffer)
        return True

    def release(self, buffers: Sequence[CmxBuffer]) -> None:
        """Free what is not needed any more."""
        for buffer in buffers:
            self._live.remove(buffer)

    def _first_fit(self, buffer: CmxBuffer) -> int | None:
        tiles = set(buffer.tiles)
        taken = sorted(_extent(other) for other in self._live if tiles & set(other.tiles))
        offset = 0
        for begin, end in taken:
            if offset + buffer.nbytes <= begin:
                break
            offset = max(offset, -(-end // ALIGNMENT) * ALIGNMENT)
        return offset if offset + buffer.nbytes <= self._nbytes else None


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
        self._issued: set[int] = set()
        self._written = self._last_writers()

    def run(self) -> list[Task]:
        for at, step in enumerate(self._steps):
            missing = [buffer for buffer in self._buffers[at] if buffer.offset is None]
            if not self._cmx.place(missing):
                need = sum(buffer.nbytes for buffer in self._buffers[at])
                raise DoesNotFit(f"a step of op {step.op}", need, self._cmx_bytes)
            for load in step.loads:
                self._issue(load, step.op)
            if self._ahead and at + 1 < len(self._steps):
                self._load_ahead(at)
            self._tasks += [Task(work, step.op) for work in (*step.work, *step.stores)]
            self._cmx.release(self._dying[at])
        return self._tasks

    def _issue(self, load: Transfer, op: int) -> None:
        if id(load) not in self._issued:
            self._issued.add(id(load))
            self._tasks.append(Task(load, op))

    def _load_ahead(self, at: int) -> None:
        """Load what the next step needs, as far as no step from here on still has to write it."""
        following = self._steps[at + 1]
        for load in following.loads:
            if isinstance(load.source, View) and self._writer(load.source.buffer) >= at:
                continue
            missing = [b for b in cmx_buffers([load]) if b.offset is None]
            if missing and self._cmx.place(missing):
                self._issue(load, following.op)

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
