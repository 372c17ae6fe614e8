"""The arguments of DPU kernels: one layout of words for all of them.

A kernel computes ``out[b,m,n] = alpha * sum over k of act[b,m,k] * weight[b,n,k]`` of one
DPU_VARIANT. Sizes and strides are arguments, so that few kernels serve all shapes; the part that a
variant computes is what the pointers and counts say.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt


class Word(IntEnum):
    """Where an argument stands: 64 bits each.

    Strides are in bytes. Pointers of tables that a problem has not are not read, nor are their
    strides; nor is ``ACT_ZERO`` but for integer activations.
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
    """Elements of k that share a scale; never 0, at least k where there is one group."""
    ALPHA = 25
    """The bits of an f32."""
    ACT_ZERO = 26
    REUSE = 27
    """A ``Reuse``; kernels that keep no weights ignore it."""
    PARTS = 28
    """In how many parts the weights lie, along k. The words of each part follow those of the one
    before; kernels that do not take parts (``Choice.takes_parts``) are given one."""
    PART_K = 29
    """Elements of k in this part, whole groups of them but in the last; K is that of all parts.
    Only ``WEIGHT`` and the tables, with their strides, are read of the parts behind the first."""


class Reuse(IntEnum):
    """Whether packed weights stay in a thread's scratch from task to task.

    It saves a tenth of eight tasks of 128 rows each. To keep weights for nobody costs as much: they
    go through the cache that all cores share. A caller that does not know says ``KEEP``.
    """

    KEEP = 0
    """Keep them: the next task may say ``PRESENT``."""
    PRESENT = 1
    """This thread's scratch is as the task before left it, which said ``KEEP`` or ``PRESENT``,
    and ran the same kernel with the same n, k, group, weights and tables; none of those bytes has
    changed. They stay."""
    NONE = 2
    """The next task will not say ``PRESENT``."""


WORDS = len(Word)
"""How many words a kernel is given."""

_STRIDES = {
    "act_strides": (Word.ACT_B, Word.ACT_M, Word.ACT_K),
    "weight_strides": (Word.WEIGHT_B, Word.WEIGHT_N, Word.WEIGHT_K),
    "out_strides": (Word.OUT_B, Word.OUT_M, Word.OUT_N),
    "scale_strides": (Word.SCALE_N, Word.SCALE_GROUP),
    "zero_strides": (Word.ZERO_N, Word.ZERO_GROUP),
    "act_scale_stride": (Word.ACT_SCALE_M,),
}

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
    """Give the words of a whole workload.

    Args:
        registers: a DPU_REGISTERS record.
        pointers: host addresses of ``ACT``, ``WEIGHT``, ``OUT`` and the tables there are.
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
    """Give the words of a part of a workload: a variant, or a thread's share.

    Args:
        words: those of the whole.
        rows: the first m, and the one behind the last.
        columns: the same of n.
    """
    part = words.copy()
    for (begin, _), moved in ((rows, MOVED_BY_ROW), (columns, MOVED_BY_COLUMN)):
        for pointer, stride in moved:
            part[pointer] += begin * part[stride]
    part[Word.M] = rows[1] - rows[0]
    part[Word.N] = columns[1] - columns[0]
    return part
