"""Common dimensions of both sides of a transfer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class JointDim(NamedTuple):
    """A dimension, with its strides on both sides in bytes."""

    length: int
    src_stride: int
    dst_stride: int


class TransferSide(NamedTuple):
    """One side of a transfer: runs of ``width`` bytes, and dimensions (count, stride)."""

    width: int
    dims: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Bytes that the transfer moves."""
        return self.width * math.prod(count for count, _ in self.dims)


def joint_dims(src: TransferSide, dst: TransferSide) -> tuple[int, tuple[JointDim, ...]] | None:
    """Split the dimensions of both sides of a transfer at the same places.

    Args:
        src: the source.
        dst: the destination, of the same size.

    Returns:
        Bytes of a run that is contiguous on both sides, and the dimensions around it, outermost
        first; None if the sides have no common split.
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


def _innermost_first(side: TransferSide) -> list[tuple[int, int]]:
    """Return dimensions as a stack whose top is innermost; the run is the innermost one."""
    return [*(dim for dim in side.dims if dim[0] > 1), (side.width, 1)]


def _merged(joint: Sequence[JointDim]) -> tuple[int, tuple[JointDim, ...]]:
    """Merge neighbours that are contiguous on both sides; ``joint`` is innermost first."""
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
