"""DPU kernels: matmuls in LLVM IR, one family per file.

``choose(Problem.of(registers, rows), host)`` returns a kernel, ``words_of`` and ``part_of`` its
arguments; a call is ``kernel(words, scratch)``, see ``jit.emitter``. Families, in the order in
which they are tried: ``squares`` (5 rows or more of floats, integers along k, byte dots),
``nibble_digits`` (one row, groups of 4-bit weights along k, byte dots), ``lookups`` (few rows,
4-bit weights along k, f32), ``nibbles`` (one row, 4-bit weights along k, bf16 dots; tried before
both where these are fast), ``quads`` (few rows of integers, byte dots), ``digits`` (one or two rows
of floats, bytes along k, byte dots), ``gemv`` (few rows, weights along k), ``axpy`` (few rows,
weights along n), ``tiles`` (many rows, tile registers), ``gemm`` (all other problems that vectors
can compute), ``generic`` (all problems). Few rows are up to 8; with AVX-512, but without tile
registers, up to 16. Their kernels are written for the exact number, and compute it in passes of
equal size: the time grows evenly with the rows.

Sums are f32, or i32 for integers, in another order than the reference's; ``fixed_point`` limits
its additional rounding error. Inputs must not overlap the output, except where the kernel
accumulates; elements of the output must not overlap.
"""

from driver_layer.engines.native.dpu.choice import choose
from driver_layer.engines.native.dpu.problem import MatmulKernel, MatmulProblem, WeightLayout
from driver_layer.engines.native.dpu.words import WORDS, Reuse, Word, part_of, words_of

__all__ = [
    "WORDS",
    "MatmulKernel",
    "MatmulProblem",
    "Reuse",
    "WeightLayout",
    "Word",
    "choose",
    "part_of",
    "words_of",
]
