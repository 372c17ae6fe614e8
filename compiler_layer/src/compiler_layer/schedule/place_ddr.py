"""Addresses of intermediate tensors in one scratch region of DDR, which reuse dead buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler_layer.schedule.tasks import Task, Transfer
from compiler_layer.schedule.views import Buffer, Space, View

ALIGNMENT = 64


def touches(tasks: Sequence[Task]) -> dict[Buffer, tuple[int, int]]:
    """Return the first and the last task that touches each scratch buffer."""
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
    """Return the first and the last task of the ops that touch each scratch buffer.

    The device needs only the spans of ``touches``, because it has copies of operands in CMX. With
    the longer spans, an op's result never overwrites its operands, even for an executor that does
    not make these copies.
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
    """Set the offset of every scratch buffer; return the total number of bytes.

    Larger buffers are placed first, each at the lowest offset without an overlap with a buffer that
    is live at the same time.

    Args:
        spans: lifetime of each buffer, as ``lifetimes`` returns them.
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
