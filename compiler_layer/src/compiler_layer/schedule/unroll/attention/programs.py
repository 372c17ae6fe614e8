"""SHAVE programs between the matmuls of scores and of the context.

With an online softmax, a row's state is its running maximum, and its running sum of weights and
running context relative to that maximum. A block of keys may raise the maximum; sum and context are
then rescaled to the new one. A row without any finite score has the lowest maximum; its first real
score scales its earlier sums by exactly 0.
"""

from __future__ import annotations

from functools import cache

from compiler_layer.codegen.program import ProgramBuilder, Register
from compiler_layer.codegen.rows import emit_softmax
from compiler_layer.dialects.npu.dpu import LOWEST
from driver_layer.abi.shave import Instruction, Op

_TINY = 1e-30
"""Lower bound of a sum of weights: rows without a finite score become zeros."""

Windows = tuple[tuple[int, str], ...]
"""Number of columns and element type of each window."""


def _masked(program: ProgramBuilder, masked: bool) -> Register:
    scores = program.load(0)
    return program.compute(Op.ADD, scores, program.load(1)) if masked else scores


@cache
def softmax(masked: bool) -> tuple[Instruction, ...]:
    """Return the program from scores (plus the mask, if any) to weights that sum to one."""
    program = ProgramBuilder()
    scores = _masked(program, masked)
    program.store(1 + masked, emit_softmax(program, scores))
    return program.finish()


def softmax_windows(columns: int, element: str, mask: str | None) -> Windows:
    """Return the windows of ``softmax``."""
    masks = () if mask is None else ((columns, mask),)
    return (columns, "f32"), *masks, (columns, element)


@cache
def online(masked: bool, first: bool) -> tuple[Instruction, ...]:
    """Return the program from a block's scores to weights, which also updates the running state.

    Windows: scores; the mask if any; running maximum, sum and context unless the block is the
    first; then the outputs: weights, maximum, sum, and the rescaled context.
    """
    program = ProgramBuilder()
    scores = _masked(program, masked)
    state = 1 + masked
    before = program.immediate(LOWEST) if first else program.load(state)
    peak = program.compute(Op.MAX, program.compute(Op.RMAX, scores), before)
    weights = program.compute(Op.EXP, program.compute(Op.SUB, scores, peak))
    total = program.compute(Op.RSUM, weights)
    written = [weights, peak, total]
    if not first:
        factor = program.compute(Op.EXP, program.compute(Op.SUB, before, peak))
        written[2] = program.compute(Op.FMA, program.load(state + 1), factor, total)
        written.append(program.compute(Op.MUL, program.load(state + 2), factor))
    for window, value in enumerate(written, state if first else state + 3):
        program.store(window, value)
    return program.finish()


def online_windows(
    columns: int, depth: int, element: str, mask: str | None, first: bool
) -> Windows:
    """Return the windows of ``online``."""
    masks = () if mask is None else ((columns, mask),)
    state = ((1, "f32"), (1, "f32"), (depth, "f32"))
    before = () if first else state
    after = state[:2] if first else state
    return (columns, "f32"), *masks, *before, (columns, element), *after


@cache
def finish() -> tuple[Instruction, ...]:
    """Return the program that divides the context by the sum of weights."""
    program = ProgramBuilder()
    total = program.compute(Op.MAX, program.load(1), program.immediate(_TINY))
    context = program.compute(Op.MUL, program.load(0), program.compute(Op.RCP, total))
    program.store(2, context)
    return program.finish()
