"""Blocks of frames that the audio model reads, and the samples that are kept of each.

A block includes neighbouring frames on both sides as context for the frames that it keeps:

    frames    0 . . . . . . . . . . . . . . . . . . .
    block 0   [ keep . . . . . | context ]
    block 1           [ context | keep . . . . | context ]

Each block keeps as many frames as the step between blocks, and the last block the remainder. No
context precedes the first frame, even if the step is less than the context of one side (where NPUW
reads on).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AudioBlock:
    """One run of the audio model.

    Attributes:
        begin, end: range of frames that the model reads, ``end`` excluded.
        skip: number of frames before the kept ones.
        keep: number of kept frames.
    """

    begin: int
    end: int
    skip: int
    keep: int

    def samples(self, made: int, size: int) -> slice:
        """Return the range of samples to keep.

        Args:
            made: number of samples that the model makes of a complete block.
            size: frames of a complete block.
        """
        first = min(_rounded(made, self.skip, size), made)
        return slice(first, min(first + _rounded(made, self.keep, size), made))


def plan_blocks(frames: int, size: int, overlap: int) -> list[AudioBlock]:
    """Cut frames into blocks.

    Args:
        frames: number of frames, at least one.
        size: frames of a block (NPUW_KOKORO_BLOCK_SIZE).
        overlap: context frames of a block, on both sides together, less than ``size``; half of an
            odd number is rounded down (NPUW_KOKORO_OVERLAP_SIZE).

    Returns:
        Blocks whose kept frames are all frames, in order.
    """
    side = overlap // 2
    step = size - 2 * side
    blocks: list[AudioBlock] = []
    for first in range(0, frames, step):
        begin = max(first - side, 0)
        end = min(begin + size, frames)
        blocks.append(AudioBlock(begin, end, first - begin, min(step, frames - first)))
    return blocks


def _rounded(made: int, frames: int, size: int) -> int:
    """Return the number of samples of some frames, rounded half up."""
    return math.floor(made * frames / size + 0.5)
