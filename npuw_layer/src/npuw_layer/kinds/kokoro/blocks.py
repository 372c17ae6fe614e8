"""Blocks of frames that the audio model reads, and the samples that are kept of each.

A block has frames of its neighbours on both sides, so that what it keeps has heard them:

    frames    0 . . . . . . . . . . . . . . . . . . .
    block 0   [ keep . . . . . | heard ]
    block 1             [ heard | keep . . . . | heard ]

Each keeps as many as the step from one to the next, and the last what is left. Nothing is before
the first frame, even where blocks step by less than they hear on one side (the original reads on).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """One run of the audio model.

    Attributes:
        begin, end: the frames that it gets, ``end`` not included.
        skip: how many of them come before those that are kept.
        keep: how many are kept.
    """

    begin: int
    end: int
    skip: int
    keep: int

    def samples(self, made: int, size: int) -> slice:
        """Give which samples are kept.

        Args:
            made: samples that the model makes of a whole block.
            size: frames of a whole block.
        """
        first = min(_rounded(made, self.skip, size), made)
        return slice(first, min(first + _rounded(made, self.keep, size), made))


def plan_blocks(frames: int, size: int, overlap: int) -> list[Block]:
    """Cut frames into blocks.

    Args:
        frames: how many there are, at least one.
        size: how many the model gets (NPUW_KOKORO_BLOCK_SIZE).
        overlap: how many of these are its neighbours', on both sides together, less than ``size``;
            of an odd number the half is rounded down (NPUW_KOKORO_OVERLAP_SIZE).

    Returns:
        Blocks whose kept frames are all frames, in order.
    """
    side = overlap // 2
    step = size - 2 * side
    blocks: list[Block] = []
    for first in range(0, frames, step):
        begin = max(first - side, 0)
        end = min(begin + size, frames)
        blocks.append(Block(begin, end, first - begin, min(step, frames - first)))
    return blocks


def _rounded(made: int, frames: int, size: int) -> int:
    """The samples of so many frames, to the nearest; half a sample counts."""
    return math.floor(made * frames / size + 0.5)
