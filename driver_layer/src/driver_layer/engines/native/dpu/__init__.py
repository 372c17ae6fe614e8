"""DPU kernels: matrix products in LLVM IR, one family per file."""

from driver_layer.engines.native.dpu.choice import choose
from driver_layer.engines.native.dpu.problem import Choice, Layout, Problem
from driver_layer.engines.native.dpu.words import WORDS, Word, part_of, words_of

__all__ = ["WORDS", "Choice", "Layout", "Problem", "Word", "choose", "part_of", "words_of"]
