"""Split points, which divide an operand so that each part has one writer.

Split points decide which reads can be redirected, but never affect correctness: a part is an
operand like any other, and parts that no copy wrote are read in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from driver_layer.engines.native.lower.template import Slot, SplitDim, Template, extent


class Write(NamedTuple):
    """Written bytes: rows of ``width`` bytes, ``pitch`` apart.

    ``begin`` is relative to the begin of the operand.
    """

    begin: int
    rows: int
    pitch: int
    width: int
    by_copy: bool
    """True if a copy wrote the bytes; readers may read its source instead."""


def choose_split(
    template: Template, writes: Mapping[int, Sequence[Write]]
) -> tuple[SplitDim, tuple[int, ...]] | None:
    """Choose a dimension, and the bounds of parts along it.

    Args:
        template: template of the reading operation.
        writes: writes to the bytes of each slot, the newest first.

    Returns:
        The dimension, and the begins of parts followed by the total size; None without a split.
    """
    for dim in template.split_dims:
        size = template.words[dim.size]
        inner: set[int] = set()
        for axis in dim.axes:
            found = _boundaries(template.slots[axis.slot], axis.dim, writes.get(axis.slot, ()))
            inner.update(axis.step * bound for bound in found)
        inner = {bound for bound in inner if 0 < bound < size}
        if inner and all(bound % dim.alignment == 0 for bound in inner):
            return dim, (0, *sorted(inner), size)
    return None


def _boundaries(slot: Slot, number: int, writes: Sequence[Write]) -> set[int]:
    """Return the boundaries between writers along a dimension; empty if none is a copy."""
    unwritten = [(0, slot.dims[number].length)]
    bounds: set[int] = set()
    by_copy = False
    for write in writes:
        low, high = _written_steps(slot, number, write)
        rest: list[tuple[int, int]] = []
        for begin, end in unwritten:
            first, last = max(begin, low), min(end, high)
            if first >= last:
                rest.append((begin, end))
                continue
            bounds |= {first, last}
            by_copy |= write.by_copy
            rest += [span for span in ((begin, first), (last, end)) if span[0] < span[1]]
        unwritten = rest
        if not unwritten:
            break
    return bounds if by_copy else set()


def _written_steps(slot: Slot, number: int, write: Write) -> tuple[int, int]:
    """Return the steps along a dimension that a write touches, as a half-open range."""
    length, stride, _ = slot.dims[number]
    everything = 0, length
    begin, size = write.begin, (write.rows - 1) * write.pitch + write.width
    above = min((dim.stride for dim in slot.dims if dim.stride > stride), default=0)
    if above:
        # Within an outer dimension, the write must touch the same bytes in each of its steps.
        if write.rows > 1 and write.pitch % above == 0:
            size = write.width
        begin %= above
        if begin + size > above:
            return everything
    inner = extent([dim for dim in slot.dims if dim.stride < stride], slot.element)
    return max((begin - inner) // stride + 1, 0), min(-(-(begin + size) // stride), length)
