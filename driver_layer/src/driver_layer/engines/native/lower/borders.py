"""Where an operand is to be cut, so that each part was written by one copy.

Where the cuts are decides what may be read through copies, never whether the result is right: a
part is an operand like any other, and parts that no copy wrote are read where they lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from driver_layer.engines.native.lower.template import Cut, Dim, Slot, Template


class Write(NamedTuple):
    """Bytes that were written.

    They are rows, a pitch apart; ``begin`` is as seen from where the operand begins.
    """

    begin: int
    rows: int
    pitch: int
    width: int
    by_copy: bool
    """Whether a copy wrote them that may be read through."""


def find_cut(
    template: Template, writes: Mapping[int, Sequence[Write]]
) -> tuple[Cut, tuple[int, ...]] | None:
    """Choose a dimension and the borders of parts along it.

    Args:
        template: of the operation that reads.
        writes: to the bytes of its slots, the newest first.

    Returns:
        The cut, and where parts begin, ending in the whole size; None if there is none.
    """
    for cut in template.cuts:
        size = template.words[cut.size]
        inner: set[int] = set()
        for axis in cut.axes:
            found = _borders(template.slots[axis.slot], axis.dim, writes.get(axis.slot, ()))
            inner.update(axis.step * border for border in found)
        inner = {border for border in inner if 0 < border < size}
        if inner and all(border % cut.multiple == 0 for border in inner):
            return cut, (0, *sorted(inner), size)
    return None


def _borders(slot: Slot, number: int, writes: Sequence[Write]) -> set[int]:
    """Where the writer changes along a dimension; nothing if no part was written by a copy."""
    hidden = [(0, slot.dims[number].length)]
    borders: set[int] = set()
    by_copy = False
    for write in writes:
        low, high = _touched(slot, number, write)
        still: list[tuple[int, int]] = []
        for begin, end in hidden:
            first, last = max(begin, low), min(end, high)
            if first >= last:
                still.append((begin, end))
                continue
            borders |= {first, last}
            by_copy |= write.by_copy
            still += [span for span in ((begin, first), (last, end)) if span[0] < span[1]]
        hidden = still
        if not hidden:
            break
    return borders if by_copy else set()


def _touched(slot: Slot, number: int, write: Write) -> tuple[int, int]:
    """The first step along a dimension that a write reaches, and the one behind the last."""
    length, stride, _ = slot.dims[number]
    everything = 0, length
    begin, size = write.begin, (write.rows - 1) * write.pitch + write.width
    above = min((dim.stride for dim in slot.dims if dim.stride > stride), default=0)
    if above:
        # Inside another dimension, a write is to reach the same of each of its steps.
        if write.rows > 1 and write.pitch % above == 0:
            size = write.width
        begin %= above
        if begin + size > above:
            return everything
    inner = _extent([dim for dim in slot.dims if dim.stride < stride], slot.element)
    return max((begin - inner) // stride + 1, 0), min(-(-(begin + size) // stride), length)


def _extent(dims: Sequence[Dim], element: int) -> int:
    return sum((dim.length - 1) * dim.stride for dim in dims) + element
