"""What both sides of a transfer have in common: one set of dimensions for both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class JointDim(NamedTuple):
    """A dimension, with its strides on both sides in bytes."""

    length: int
    src_stride: int
    dst_stride: int


class Side(NamedTuple):
    """One side: runs of ``width`` bytes, and dimensions (count, stride), outermost first."""

    width: int
    dims: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Bytes that it moves."""
        return self.width * math.prod(count for count, _ in self.dims)


def joint_dims(src: Side, dst: Side) -> tuple[int, tuple[JointDim, ...]] | None:
    """Cut both sides of a transfer at the same places.

    Args:
        src: where bytes come from.
        dst: where they go; of the same size.

    Returns:
        Bytes of a run that lies together on both sides, and the dimensions around it, outermost
        first; None if neither side's dimensions can be cut into the other's.
    """
    left, right = _innermost_first(src), _innermost_first(dst)
    joint: list[JointDim] = []
    while left and right:
        (a, a_stride), (b, b_stride) = left.pop(), right.pop()
        common = math.gcd(a, b)
        if common == 1 and a != b and 1 not in (a, b):
            return None
        joint.append(JointDim(common, a_stride, b_stride))
        if a > common:
            left.append((a // common, a_stride * common))
        if b > common:
            right.append((b // common, b_stride * common))
    return _merged(joint)


def _innermost_first(side: Side) -> list[tuple[int, int]]:
    """Dimensions with the run as the last one: a stack whose top is innermost."""
    return [*(dim for dim in side.dims if dim[0] > 1), (side.width, 1)]


def _merged(joint: Sequence[JointDim]) -> tuple[int, tuple[JointDim, ...]]:
    """Join neighbours that continue each other on both sides; ``joint`` is innermost first."""
    merged: list[JointDim] = []
    for dim in joint:
        if dim.length == 1:
            continue
        if merged:
            last = merged[-1]
            ends = (last.length * last.src_stride, last.length * last.dst_stride)
            if ends == (dim.src_stride, dim.dst_stride):
                merged[-1] = JointDim(last.length * dim.length, last.src_stride, last.dst_stride)
                continue
        merged.append(dim)
    if merged and (merged[0].src_stride, merged[0].dst_stride) == (1, 1):
        return merged[0].length, tuple(reversed(merged[1:]))
    return 1, tuple(reversed(merged))
