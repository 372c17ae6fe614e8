"""Ops across the columns of a row, in SHAVE instructions: reductions, softmax, norms, rotation."""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.codegen.program import Emit, ProgramBuilder, Register, direct
from compiler_layer.dialects.npu.dpu import LOWEST
from compiler_layer.dialects.ov import attention, reduce
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import shape_of
from driver_layer.abi.shave import Op

_TINY = 1e-30


def _mean(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    width = shape_of(op.operands[0])[-1]
    return p.compute(Op.MUL, p.compute(Op.RSUM, x[0]), p.immediate(1 / width))


def _l1(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    return p.compute(Op.RSUM, p.compute(Op.ABS, x[0]))


def _l2(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    return p.compute(Op.SQRT, p.compute(Op.RSUM, p.compute(Op.MUL, x[0], x[0])))


def _rms(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    assert isinstance(op, attention.RMS)
    mean = _mean(p, op, [p.compute(Op.MUL, x[0], x[0])])
    shifted = p.compute(Op.ADD, mean, p.immediate(op.epsilon.value.data))
    normal = p.compute(Op.MUL, x[0], p.compute(Op.RSQRT, shifted))
    return p.compute(Op.MUL, normal, x[1]) if len(x) > 1 else normal


def _mvn(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    assert isinstance(op, reduce.MVN)
    centred = p.compute(Op.SUB, x[0], _mean(p, op, x))
    if not int_value(op.normalize_variance):
        return centred
    variance = _mean(p, op, [p.compute(Op.MUL, centred, centred)])
    eps = p.immediate(op.eps.value.data)
    if op.eps_mode.data.lower() == "inside_sqrt":
        inverse = p.compute(Op.RSQRT, p.compute(Op.ADD, variance, eps))
    else:
        inverse = p.compute(Op.RCP, p.compute(Op.ADD, p.compute(Op.SQRT, variance), eps))
    return p.compute(Op.MUL, centred, inverse)


def emit_softmax(p: ProgramBuilder, x: Register) -> Register:
    """Softmax of rows; a row without finite elements becomes zeros."""
    peak = p.compute(Op.MAX, p.compute(Op.RMAX, x), p.immediate(LOWEST))
    power = p.compute(Op.EXP, p.compute(Op.SUB, x, peak))
    total = p.compute(Op.MAX, p.compute(Op.RSUM, power), p.immediate(_TINY))
    return p.compute(Op.MUL, power, p.compute(Op.RCP, total))


def _softmax(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    return emit_softmax(p, x[0])


def _log_softmax(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    shifted = p.compute(Op.SUB, x[0], p.compute(Op.RMAX, x[0]))
    total = p.compute(Op.RSUM, p.compute(Op.EXP, shifted))
    return p.compute(Op.SUB, shifted, p.compute(Op.LOG, total))


def _shifted(p: ProgramBuilder, x: Register, columns: int, width: int) -> Register:
    """Shift columns to the right (to the left if negative), and fill with zeros."""
    column = p.compute(Op.IOTA)
    if columns > 0:
        inside = p.compute(Op.CMPLE, p.immediate(columns), column)
    else:
        inside = p.compute(Op.CMPLT, column, p.immediate(width + columns))
    return p.compute(Op.SEL, inside, p.compute(Op.ROT, x, imm=-columns % width), p.immediate(0))


def _cum_sum(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    """Prefix sum in log2(width) steps: each step adds the sums shifted by 1, 2, 4 … columns."""
    assert isinstance(op, reduce.CumSum)
    width = shape_of(op.x)[-1]
    direction = -1 if int_value(op.reverse) else 1
    total, step = x[0], 1
    while step < width:
        total = p.compute(Op.ADD, total, _shifted(p, total, direction * step, width))
        step *= 2
    return _shifted(p, total, direction, width) if int_value(op.exclusive) else total


def _rope(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    """Rotary embedding: x · cos + rotate_half(x) · sin."""
    half = shape_of(op.operands[0])[-1] // 2
    turned = p.compute(Op.ROT, x[0], imm=half)
    in_first = p.compute(Op.CMPLT, p.compute(Op.IOTA), p.immediate(half))
    signed = p.compute(Op.SEL, in_first, p.compute(Op.NEG, turned), turned)
    return p.compute(Op.FMA, signed, x[2], p.compute(Op.MUL, x[0], x[1]))


ROWS: dict[type[OvOp], Emit] = {
    reduce.ReduceSum: direct(Op.RSUM),
    reduce.ReduceMax: direct(Op.RMAX),
    reduce.ReduceMin: direct(Op.RMIN),
    reduce.ReduceLogicalOr: direct(Op.RMAX),
    reduce.ReduceLogicalAnd: direct(Op.RMIN),
    reduce.ReduceMean: _mean,
    reduce.ReduceL1: _l1,
    reduce.ReduceL2: _l2,
    reduce.Softmax: _softmax,
    reduce.LogSoftmax: _log_softmax,
    reduce.MVN: _mvn,
    reduce.CumSum: _cum_sum,
    attention.RMS: _rms,
    attention.RoPE: _rope,
}
