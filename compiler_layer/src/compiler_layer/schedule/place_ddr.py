"""Gives intermediate tensors addresses in one scratch region of DDR, reusing what is dead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler_layer.schedule.tasks import Task, Transfer
from compiler_layer.schedule.views import Buffer, Space, View

ALIGNMENT = 64


def touches(tasks: Sequence[Task]) -> dict[Buffer, tuple[int, int]]:
    """For each scratch buffer the first and the last task that touches it."""
    spans: dict[Buffer, tuple[int, int]] = {}
    for at, task in enumerate(tasks):
        if not isinstance(task.work, Transfer):
            continue
        for place in (task.work.source, task.work.target):
            if isinstance(place, View) and place.buffer.space is Space.SCRATCH:
                first, _ = spans.get(place.buffer, (at, at))
                spans[place.buffer] = (first, at)
    return spans


def lifetimes(tasks: Sequence[Task]) -> dict[Buffer, tuple[int, int]]:
    """For each scratch buffer the first and the last task of the ops that touch it.

    What ``touches`` says would be enough for the device, which has copies of operands in CMX by
    then. But who executes a program in another way, without making these copies, does not find an
    op's operands overwritten by its result.
    """
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    for at, task in enumerate(tasks):
        begins.setdefault(task.op, at)
        ends[task.op] = at
    return {
        buffer: (begins[tasks[first].op], ends[tasks[last].op])
        for buffer, (first, last) in touches(tasks).items()
    }


def place_ddr(spans: Mapping[Buffer, tuple[int, int]]) -> int:
    """Set the offset of every scratch buffer; give the bytes needed in all.

    Larger buffers are placed first, each at the lowest offset that no buffer alive at the same
    time overlaps.

    Args:
        spans: when each buffer is alive, as ``lifetimes`` gives it.
    """
    placed: list[tuple[Buffer, tuple[int, int]]] = []
    total = 0
    for buffer, span in sorted(spans.items(), key=lambda item: (-item[0].nbytes, item[1])):
        rivals = sorted(
            (other.offset, other.offset + other.nbytes)
            for other, alive in placed
            if alive[0] <= span[1] and span[0] <= alive[1]
        )
        offset = 0
        for begin, end in rivals:
            if offset + buffer.nbytes <= begin:
                break
            offset = max(offset, -(-end // ALIGNMENT) * ALIGNMENT)
        buffer.offset = offset
        placed.append((buffer, span))
        total = max(total, offset + buffer.nbytes)
    return total
