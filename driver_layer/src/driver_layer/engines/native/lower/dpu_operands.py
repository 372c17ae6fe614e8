"""Operands of DPU workloads: their layout and split dimensions, as words of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driver_layer.abi.dtypes import BY_CODE, DType
from driver_layer.engines.native.dpu import MatmulKernel, MatmulProblem
from driver_layer.engines.native.dpu.words import TABLE_STRIDES, Word
from driver_layer.engines.native.lower.arrays import Ints
from driver_layer.engines.native.lower.template import (
    NO_WORD,
    Access,
    Axis,
    Dim,
    Slot,
    SplitDim,
    is_nontrivial,
    slot,
)

_LAYOUTS = {
    Word.ACT: ((Word.BATCH, Word.M, Word.K), (Word.ACT_B, Word.ACT_M, Word.ACT_K)),
    Word.WEIGHT: ((Word.BATCH, Word.N, Word.K), (Word.WEIGHT_B, Word.WEIGHT_N, Word.WEIGHT_K)),
    Word.OUT: ((Word.BATCH, Word.M, Word.N), (Word.OUT_B, Word.OUT_M, Word.OUT_N)),
    Word.SCALE: ((Word.N, Word.GROUP), TABLE_STRIDES[Word.SCALE]),
    Word.ZERO: ((Word.N, Word.GROUP), TABLE_STRIDES[Word.ZERO]),
    Word.ACT_SCALE: ((Word.M,), (Word.ACT_SCALE_M,)),
}
"""Words of the dimensions of each operand, and of their strides."""


@dataclass(frozen=True, slots=True)
class Operand:
    """Words that hold the layout of an operand, and its element type."""

    pointer: Word
    counts: tuple[Word, ...]
    strides: tuple[Word, ...]
    kind: DType


def operands_of(problem: MatmulProblem) -> list[Operand]:
    """Return the operands of a problem: activations, weights, output, and its tables."""
    row_scales = DType.FP32 if problem.row_scales else DType.UNSET
    kinds = problem.act, problem.weight, problem.out, problem.scale, problem.zero, row_scales
    return [
        Operand(pointer, counts, strides, kind)
        for (pointer, (counts, strides)), kind in zip(_LAYOUTS.items(), kinds, strict=True)
        if kind is not DType.UNSET
    ]


def slot_of(operand: Operand, words: Ints, problem: MatmulProblem) -> Slot:
    """Return the slot of an operand; the word of its pointer holds the variant's offset."""
    access = Access.READ
    if operand.pointer is Word.OUT:
        access = Access.WRITE | (Access.READ if problem.accumulate else Access(0))
    offset = int(words[operand.pointer])
    return slot(operand.pointer, access, dims_of(operand, words), itemsize_of(operand), offset)


def itemsize_of(operand: Operand) -> int:
    """Return the bytes of a storage element."""
    return BY_CODE[operand.kind].storage.itemsize


def dims_of(operand: Operand, words: Ints) -> list[Dim]:
    """Return all dimensions of an operand."""
    element = BY_CODE[operand.kind]
    dims: list[Dim] = []
    for count_word, stride_word in zip(operand.counts, operand.strides, strict=True):
        count = int(words[count_word])
        if count_word is Word.GROUP:
            count = -(-int(words[Word.K]) // count)
        if count_word is Word.K and element.bits < 8:
            count = -(-count // 2)  # two elements to a byte
        stride = int(words[stride_word])
        # Kernels are specialised for contiguous elements.
        fixed = stride == element.storage.itemsize
        dims.append(Dim(count, stride, NO_WORD if fixed else stride_word))
    return dims


def split_dims_of(
    problem: MatmulProblem, choice: MatmulKernel, words: Ints
) -> tuple[SplitDim, ...]:
    """Return the dimensions along which weights and their tables may be split.

    Activations are never split: every part along their rows would read all weights again.
    """
    operands = operands_of(problem)
    axes = _axes(operands, words, Word.N)
    columns = SplitDim(Word.N, axes, 1, ((Word.OUT, Word.OUT_N),), NO_WORD)
    reduction = SplitDim(
        Word.PART_K,
        _axes(operands, words, Word.K) + _axes(operands, words, Word.GROUP),
        int(words[Word.GROUP]) if problem.has_groups else 1,
        (),
        Word.PARTS,
    )
    return (columns, reduction) if choice.takes_parts else (columns,)


def _axes(operands: Sequence[Operand], words: Ints, count: Word) -> tuple[Axis, ...]:
    """Return the positions of a dimension in weights and their tables."""
    found: list[Axis] = []
    for number, operand in enumerate(operands):
        if operand.pointer in _SPLITTABLE and count in operand.counts:
            place = operand.counts.index(count)
            dims = dims_of(operand, words)
            if is_nontrivial(dims[place]):
                step = int(words[Word.GROUP]) if count is Word.GROUP else 1
                found.append(Axis(number, sum(map(is_nontrivial, dims[:place])), step))
    return tuple(found)


_SPLITTABLE = (Word.WEIGHT, Word.SCALE, Word.ZERO)
