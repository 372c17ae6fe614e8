"""DPU kernels: matrix products in LLVM IR, one family per file.

``choose(Problem.of(registers, rows), host)`` gives a kernel, ``words_of`` and ``part_of`` its
arguments; it is run as ``kernel(words, scratch)``, see ``jit.emitter``. Families, in the order in
which they are asked: ``nibble_digits`` (one row, groups of 4-bit weights along k, byte dots),
``lookups`` (up to 8 rows, 4-bit weights along k, f32), ``nibbles`` (one row, 4-bit weights along k,
bf16 dots; the first where these are fast), ``quads`` (few rows of integers, byte dots), ``digits``
(one or two rows of floats, bytes along k, byte dots), ``gemv`` (up to 8 rows, weights along k),
``axpy`` (up to 8 rows, weights along n), ``tiles`` (many rows, products in tile registers),
``gemm`` (the rest of what vectors can do), ``generic`` (everything).

Sums are f32, or i32 of integers, in another order than the reference's; of what ``fixed_point``
rounds, no more is lost than that may lose. What a kernel reads must not overlap what it writes, but
where it accumulates; elements of the output must not overlap.
"""

from driver_layer.engines.native.dpu.choice import choose
from driver_layer.engines.native.dpu.problem import Choice, Layout, Problem
from driver_layer.engines.native.dpu.words import WORDS, Reuse, Word, part_of, words_of

__all__ = [
    "WORDS",
    "Choice",
    "Layout",
    "Problem",
    "Reuse",
    "Word",
    "choose",
    "part_of",
    "words_of",
]
