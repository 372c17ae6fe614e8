"""Arguments of DPU kernels, in one layout for all kernels.

A kernel computes ``out[b,m,n] = alpha * sum over k of act[b,m,k] * weight[b,n,k]`` for one
DPU_VARIANT. Sizes and strides are arguments, so that few kernels serve all shapes; pointers and
counts select the variant's region.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt


class Word(IntEnum):
    """Index of an argument of 64 bits.

    Strides are in bytes. Pointers and strides of missing tables are not read; ``ACT_ZERO`` is read
    for integer activations only.
    """

    ACT = 0
    WEIGHT = 1
    OUT = 2
    SCALE = 3
    ZERO = 4
    ACT_SCALE = 5

    ACT_B = 6
    ACT_M = 7
    ACT_K = 8
    WEIGHT_B = 9
    WEIGHT_N = 10
    WEIGHT_K = 11
    OUT_B = 12
    OUT_M = 13
    OUT_N = 14
    SCALE_N = 15
    SCALE_GROUP = 16
    ZERO_N = 17
    ZERO_GROUP = 18
    ACT_SCALE_M = 19

    BATCH = 20
    M = 21
    N = 22
    K = 23
    GROUP = 24
    """Elements of k that share a scale, at least 1; at least k for one group."""
    ALPHA = 25
    """Bits of an f32."""
    ACT_ZERO = 26
    REUSE = 27
    """A ``Reuse``; ignored by kernels that keep no weights."""
    PARTS = 28
    """Number of parts of the weights, along k. The words of each part follow those of the previous
    part. Kernels without ``Choice.takes_parts`` need one part."""
    PART_K = 29
    """Elements of k in this part: complete groups, except in the last part; K is the total. Of the
    parts after the first, only ``WEIGHT`` and the tables, with their strides, are read."""


class Reuse(IntEnum):
    """Request to keep packed weights in a thread's scratch from task to task.

    Reuse saves a tenth of the time of eight tasks of 128 rows each. Keeping weights without reusing
    them costs as much: they go through the cache that all cores share. Callers that do not know
    the next task use ``KEEP``.
    """

    KEEP = 0
    """Keep the packed weights: the next task may use ``PRESENT``."""
    PRESENT = 1
    """Use the packed weights, and keep them: the thread's previous task used ``KEEP`` or
    ``PRESENT``, and the same kernel with equal n, k, group, weights and tables, whose bytes are
    unchanged, as is scratch."""
    NONE = 2
    """Do not keep the weights: the next task does not use ``PRESENT``."""


WORDS = len(Word)
"""Number of words that a kernel is given."""

_STRIDES = {
    "act_strides": (Word.ACT_B, Word.ACT_M, Word.ACT_K),
    "weight_strides": (Word.WEIGHT_B, Word.WEIGHT_N, Word.WEIGHT_K),
    "out_strides": (Word.OUT_B, Word.OUT_M, Word.OUT_N),
    "scale_strides": (Word.SCALE_N, Word.SCALE_GROUP),
    "zero_strides": (Word.ZERO_N, Word.ZERO_GROUP),
    "act_scale_stride": (Word.ACT_SCALE_M,),
}

TABLE_STRIDES = {
    Word.SCALE: (Word.SCALE_N, Word.SCALE_GROUP),
    Word.ZERO: (Word.ZERO_N, Word.ZERO_GROUP),
}
"""Strides of each table along columns, and along groups of k."""

MOVED_BY_ROW: tuple[tuple[Word, Word], ...] = (
    (Word.ACT, Word.ACT_M),
    (Word.OUT, Word.OUT_M),
    (Word.ACT_SCALE, Word.ACT_SCALE_M),
)
MOVED_BY_COLUMN: tuple[tuple[Word, Word], ...] = (
    (Word.WEIGHT, Word.WEIGHT_N),
    (Word.OUT, Word.OUT_N),
    (Word.SCALE, Word.SCALE_N),
    (Word.ZERO, Word.ZERO_N),
)


def words_of(registers: Any, pointers: Mapping[Word, int]) -> npt.NDArray[np.int64]:
    """Return the words of a complete workload.

    Args:
        registers: a DPU_REGISTERS record.
        pointers: host addresses of ``ACT``, ``WEIGHT``, ``OUT`` and the tables in use.
    """
    words = np.zeros(WORDS, np.int64)
    for word, address in pointers.items():
        words[word] = address
    for name, places in _STRIDES.items():
        words[list(places)] = np.atleast_1d(registers[name])
    for word in (Word.BATCH, Word.M, Word.N, Word.K):
        words[word] = registers[word.name.lower()]
    words[Word.PARTS], words[Word.PART_K] = 1, words[Word.K]
    words[Word.GROUP] = int(registers["group"]) or int(registers["k"])
    words[Word.ALPHA] = int(np.float32(registers["alpha"]).view(np.uint32))
    words[Word.ACT_ZERO] = registers["act_zero"]
    return words


def part_of(
    words: npt.NDArray[np.int64], rows: tuple[int, int], columns: tuple[int, int]
) -> npt.NDArray[np.int64]:
    """Return the words of a part of a workload: a variant, or a thread's share.

    Args:
        words: words of the complete workload.
        rows: range (begin, end) of m.
        columns: range (begin, end) of n.
    """
    part = words.copy()
    for (begin, _), moved in ((rows, MOVED_BY_ROW), (columns, MOVED_BY_COLUMN)):
        for pointer, stride in moved:
            part[pointer] += begin * part[stride]
    part[Word.M] = rows[1] - rows[0]
    part[Word.N] = columns[1] - columns[0]
    return part
