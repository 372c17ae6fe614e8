"""What each row-wise op is in SHAVE instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler_layer.codegen.program import ProgramBuilder, Register
from compiler_layer.dialects.ov import activation, attention, elementwise, logic, reduce
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import FLOATS, element_of, shape_of
from compiler_layer.errors import UnsupportedModel
from compiler_layer.passes.lower_attention import LOWEST
from compiler_layer.passes.match import scalar_of
from driver_layer.abi.shave import Op

Emit = Callable[[ProgramBuilder, OvOp, Sequence[Register]], Register]

_TINY = 1e-30

_DIRECT: dict[type[OvOp], Op] = {
    elementwise.Sqrt: Op.SQRT,
    elementwise.Exp: Op.EXP,
    elementwise.Sin: Op.SIN,
    elementwise.Cos: Op.COS,
    activation.Tanh: Op.TANH,
    elementwise.Negative: Op.NEG,
    elementwise.Abs: Op.ABS,
    elementwise.Floor: Op.FLOOR,
    elementwise.Add: Op.ADD,
    elementwise.Subtract: Op.SUB,
    elementwise.Multiply: Op.MUL,
    elementwise.Divide: Op.DIV,
    elementwise.Minimum: Op.MIN,
    elementwise.Maximum: Op.MAX,
    logic.Equal: Op.CMPEQ,
    logic.Less: Op.CMPLT,
    logic.LessEqual: Op.CMPLE,
    elementwise.Select: Op.SEL,
    reduce.ReduceSum: Op.RSUM,
    reduce.ReduceMax: Op.RMAX,
}
"""Ops that are one instruction."""


def _direct(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    return p.compute(_DIRECT[type(op)], *x)


def _greater(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    strict = isinstance(op, logic.Greater)
    return p.compute(Op.CMPLT if strict else Op.CMPLE, x[1], x[0])


def _and(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    if element_of(op.results[0]) != "boolean":
        raise UnsupportedModel(f"{op.friendly_name!r}: SHAVE has no bits of integers")
    return p.compute(Op.MUL, *x)


def _sigmoid(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    power = p.compute(Op.EXP, p.compute(Op.NEG, x[0]))
    return p.compute(Op.RCP, p.compute(Op.ADD, power, p.immediate(1)))


def _swish(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    inner = p.compute(Op.MUL, *x) if len(x) > 1 else x[0]
    return p.compute(Op.MUL, x[0], _sigmoid(p, op, [inner]))


def _power(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    exponent = scalar_of(op.operands[1])
    if exponent == 2:
        return p.compute(Op.MUL, x[0], x[0])
    if exponent == -0.5:
        return p.compute(Op.RSQRT, x[0])
    if exponent == 0.5:
        return p.compute(Op.SQRT, x[0])
    return p.compute(Op.POW, *x)


def _convert(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    """Registers hold f32: only what loses a fraction or becomes a truth value is computed."""
    source, target = element_of(op.operands[0]), element_of(op.results[0])
    if target == "boolean":
        zero = p.immediate(0)
        return p.compute(Op.SEL, p.compute(Op.CMPEQ, x[0], zero), zero, p.immediate(1))
    if source in FLOATS and target not in FLOATS:
        down = p.compute(Op.FLOOR, x[0])
        up = p.compute(Op.NEG, p.compute(Op.FLOOR, p.compute(Op.NEG, x[0])))
        return p.compute(Op.SEL, p.compute(Op.CMPLT, x[0], p.immediate(0)), up, down)
    return x[0]


def _mean(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    width = shape_of(op.operands[0])[-1]
    return p.compute(Op.MUL, p.compute(Op.RSUM, x[0]), p.immediate(1 / width))


def _rms(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    assert isinstance(op, attention.RMS)
    mean = _mean(p, op, [p.compute(Op.MUL, x[0], x[0])])
    shifted = p.compute(Op.ADD, mean, p.immediate(op.epsilon.value.data))
    normal = p.compute(Op.MUL, x[0], p.compute(Op.RSQRT, shifted))
    return p.compute(Op.MUL, normal, x[1]) if len(x) > 1 else normal


def emit_softmax(p: ProgramBuilder, x: Register) -> Register:
    """Softmax of rows; one without any finite element gives zeros."""
    peak = p.compute(Op.MAX, p.compute(Op.RMAX, x), p.immediate(LOWEST))
    power = p.compute(Op.EXP, p.compute(Op.SUB, x, peak))
    total = p.compute(Op.MAX, p.compute(Op.RSUM, power), p.immediate(_TINY))
    return p.compute(Op.MUL, power, p.compute(Op.RCP, total))


def _softmax(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    return emit_softmax(p, x[0])


def _rope(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    """Columns rotated by half a head, the first half of them negated."""
    half = shape_of(op.operands[0])[-1] // 2
    turned = p.rotate(x[0], half)
    in_first = p.compute(Op.CMPLT, p.iota(), p.immediate(half))
    signed = p.compute(Op.SEL, in_first, p.compute(Op.NEG, turned), turned)
    return p.compute(Op.FMA, signed, x[2], p.compute(Op.MUL, x[0], x[1]))


EMIT: dict[type[OvOp], Emit] = {
    **dict.fromkeys(_DIRECT, _direct),
    logic.Greater: _greater,
    logic.GreaterEqual: _greater,
    logic.BitwiseAnd: _and,
    logic.LogicalAnd: _and,
    activation.Sigmoid: _sigmoid,
    activation.Swish: _swish,
    elementwise.Power: _power,
    elementwise.Convert: _convert,
    reduce.ReduceMean: _mean,
    reduce.Softmax: _softmax,
    attention.RMS: _rms,
    attention.RoPE: _rope,
}
"""How each op is emitted."""
