"""An operand as it lies on the other side of a copy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from driver_layer.engines.native.lower.template import NO_WORD, Dim, Slot


class Moved(NamedTuple):
    """Where an operand begins on the other side, and its strides there."""

    offset: int
    """Bytes from where the copy begins on that side."""
    strides: tuple[tuple[int, int], ...]
    """Arguments of the kernel that change, and what they become."""


@lru_cache(maxsize=1 << 14)
def through(operand: Slot, offset: int, near: Slot, far: Slot) -> Moved | None:
    """Find an operand that lies in one side of a copy on its other side.

    Dimensions of the operand that step over whole rows of the copy step over rows of the other
    side; the rest of them must stay within a row.

    Args:
        operand: what lies there.
        offset: bytes from the near side's begin to the operand's.
        near: the side in which it lies: it stays within the region that this side covers. A side
            with gaps has strides where an operand has none that stays out of them.
        far: the other side; the same dimensions with other strides.

    Returns:
        None if it has no strides there.
    """
    if operand.word == NO_WORD:
        return None
    near_dims, far_dims = near.dims, far.dims
    # A side that repeats its bytes has fewer dimensions.
    if len(near_dims) != len(far_dims) or not _in_order(near_dims, near.element):
        return None
    rest, moved, strides = operand.dims, 0, dict[int, int]()
    for (_, near_stride, _), (_, far_stride, _) in zip(near_dims, far_dims, strict=True):
        here = [dim for dim in rest if dim.stride % near_stride == 0]
        rest = tuple(dim for dim in rest if dim.stride % near_stride)
        moved += offset // near_stride * far_stride
        offset %= near_stride
        if offset + _extent(rest, operand.element) > near_stride:
            return None
        for dim in here:
            stride = dim.stride // near_stride * far_stride
            if stride == dim.stride:
                continue
            if dim.word == NO_WORD:
                return None
            strides[dim.word] = stride
    if near_dims and offset + _extent(rest, operand.element) > near.element:
        return None
    return Moved(moved + offset, tuple(strides.items()))


def _in_order(dims: Sequence[Dim], element: int) -> bool:
    """Tell whether a side goes on from byte to byte, never back."""
    size = element
    for dim in reversed(dims):
        if dim.stride < size:
            return False
        size = dim.stride * dim.length
    return True


def _extent(dims: Sequence[Dim], element: int) -> int:
    return sum((dim.length - 1) * dim.stride for dim in dims) + element
