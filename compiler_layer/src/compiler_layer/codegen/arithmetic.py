"""Arithmetic, comparisons, Boolean logic and conversions in SHAVE instructions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from compiler_layer.codegen.program import Emit, ProgramBuilder, Register, direct
from compiler_layer.dialects.ov import activation, elementwise, logic, quantize
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import FLOATS
from compiler_layer.errors import UnsupportedModel
from compiler_layer.rewriting.match import producer, scalar_of
from driver_layer.abi.float8 import FORMATS
from driver_layer.abi.shave import Op

_ROUNDING = {"f8e4m3": Op.RE4M3, "f8e5m2": Op.RE5M2}
"""Opcode that rounds a register to each 8-bit float type."""


def _greater(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    strict = isinstance(op, logic.Greater)
    return p.compute(Op.CMPLT if strict else Op.CMPLE, x[1], x[0])


def _inverted(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    return p.compute(Op.SUB, p.immediate(1), x[0])


def _not_equal(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    return p.compute(Op.SUB, p.immediate(1), p.compute(Op.CMPEQ, *x))


def _of_truths(emit: Emit) -> Emit:
    """Return an emitter that rejects integers: SHAVE has no bitwise ops."""

    def checked(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
        element = element_of(op.results[0])
        if element != "boolean":
            raise UnsupportedModel(f"{op.described} of {element}: SHAVE has no bitwise integer ops")
        return emit(p, op, x)

    return checked


_and, _or = _of_truths(direct(Op.MUL)), _of_truths(direct(Op.MAX))
_xor, _not = _of_truths(_not_equal), _of_truths(_inverted)


def _divide(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    quotient = p.compute(Op.DIV, *x)
    whole = element_of(op.results[0]) not in FLOATS
    return p.compute(Op.FLOOR, quotient) if whole else quotient


def _power(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    exponent = scalar_of(op.operands[1])
    if exponent == 2:
        return p.compute(Op.MUL, x[0], x[0])
    if exponent == -0.5:
        return p.compute(Op.RSQRT, x[0])
    if exponent == 0.5:
        return p.compute(Op.SQRT, x[0])
    return p.compute(Op.POW, *x)


def _squared_difference(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    difference = p.compute(Op.SUB, *x)
    return p.compute(Op.MUL, difference, difference)


def _truncated(p: ProgramBuilder, x: Register) -> Register:
    """Round towards zero."""
    up = _ceiling_of(p, x)
    return p.compute(Op.SEL, p.compute(Op.CMPLT, x, p.immediate(0)), up, p.compute(Op.FLOOR, x))


def _ceiling_of(p: ProgramBuilder, x: Register) -> Register:
    return p.compute(Op.NEG, p.compute(Op.FLOOR, p.compute(Op.NEG, x)))


def _mod(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    """A - b · trunc(a / b) for Mod, a - b · floor(a / b) for FloorMod."""
    quotient = p.compute(Op.DIV, *x)
    down = isinstance(op, elementwise.FloorMod)
    whole = p.compute(Op.FLOOR, quotient) if down else _truncated(p, quotient)
    return p.compute(Op.SUB, x[0], p.compute(Op.MUL, x[1], whole))


def _ceiling(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    return _ceiling_of(p, x[0])


def _sign(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    zero = p.immediate(0)
    return p.compute(Op.SUB, p.compute(Op.CMPLT, zero, x[0]), p.compute(Op.CMPLT, x[0], zero))


def _round(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    assert isinstance(op, elementwise.Round)
    if op.mode.data.lower() == "half_to_even":
        return p.compute(Op.RINT, x[0])
    away = p.compute(Op.FLOOR, p.compute(Op.ADD, p.compute(Op.ABS, x[0]), p.immediate(0.5)))
    return p.compute(Op.MUL, _sign(p, op, x), away)


def _convert(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    """Drop a fraction, or convert to boolean or f8; other types are f32 in registers.

    f8 is rounded in the register, so that the next op sees it; f16 and bf16 are rounded in memory.
    """
    source, target = element_of(op.operands[0]), element_of(op.results[0])
    if target == "boolean":
        return _not_equal(p, op, [x[0], p.immediate(0)])
    if target in _ROUNDING and source != target:
        return p.compute(_ROUNDING[target], x[0])
    if source in FLOATS and target not in FLOATS and not _is_whole(op.operands[0]):
        return _truncated(p, x[0])
    return x[0]


def _is_whole(value: SSAValue) -> bool:
    """Return whether the op that computes a float rounds it to an integer, as quantisation does."""
    clamp = producer(value, activation.Clamp)
    if clamp is not None and all(bound.value.data % 1 == 0 for bound in (clamp.min, clamp.max)):
        value = clamp.x
    return isinstance(value.owner, elementwise.Round | elementwise.Floor | elementwise.Ceiling)


def _dequantize(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    """(stored - zero) · scale; among the operands, the scale precedes the zero point."""
    del op
    centred = p.compute(Op.SUB, x[0], x[2]) if len(x) > 2 else x[0]
    return p.compute(Op.MUL, centred, x[1])


def _fake_convert(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    """Multiply by the scale, round to f8, and multiply by the scale's reciprocal."""
    assert isinstance(op, quantize.FakeConvert)
    kind = op.destination_type.data
    value = p.compute(Op.MUL, x[0], x[1])
    if len(x) > 2:
        value = p.compute(Op.SUB, value, x[2])
    limit = FORMATS[kind].limit
    value = p.compute(Op.MAX, value, p.immediate(-limit))
    value = p.compute(_ROUNDING[kind], p.compute(Op.MIN, value, p.immediate(limit)))
    if len(x) > 2:
        value = p.compute(Op.ADD, value, x[2])
    return p.compute(Op.MUL, value, p.compute(Op.RCP, x[1]))


def _fake_quantize(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    """Clamp to the input bounds and round to the nearest quantisation level."""
    assert isinstance(op, quantize.FakeQuantize)
    value, low, high, out_low, out_high = x
    steps = p.immediate(int_value(op.levels) - 1)
    part = p.compute(Op.DIV, p.compute(Op.SUB, value, low), p.compute(Op.SUB, high, low))
    step = p.compute(Op.DIV, p.compute(Op.RINT, p.compute(Op.MUL, part, steps)), steps)
    inside = p.compute(Op.FMA, step, p.compute(Op.SUB, out_high, out_low), out_low)
    below = p.compute(Op.CMPLE, value, p.compute(Op.MIN, low, high))
    above = p.compute(Op.CMPLT, p.compute(Op.MAX, low, high), value)
    return p.compute(Op.SEL, above, out_high, p.compute(Op.SEL, below, out_low, inside))


ARITHMETIC: dict[type[OvOp], Emit] = {
    elementwise.Sqrt: direct(Op.SQRT),
    elementwise.Exp: direct(Op.EXP),
    elementwise.Log: direct(Op.LOG),
    elementwise.Sin: direct(Op.SIN),
    elementwise.Cos: direct(Op.COS),
    elementwise.Negative: direct(Op.NEG),
    elementwise.Abs: direct(Op.ABS),
    elementwise.Floor: direct(Op.FLOOR),
    elementwise.Ceiling: _ceiling,
    elementwise.Sign: _sign,
    elementwise.Round: _round,
    elementwise.Add: direct(Op.ADD),
    elementwise.Subtract: direct(Op.SUB),
    elementwise.Multiply: direct(Op.MUL),
    elementwise.Divide: _divide,
    elementwise.Mod: _mod,
    elementwise.FloorMod: _mod,
    elementwise.Power: _power,
    elementwise.SquaredDifference: _squared_difference,
    elementwise.Minimum: direct(Op.MIN),
    elementwise.Maximum: direct(Op.MAX),
    elementwise.Select: direct(Op.SEL),
    elementwise.Convert: _convert,
    quantize.Dequantize: _dequantize,
    quantize.FakeConvert: _fake_convert,
    quantize.FakeQuantize: _fake_quantize,
    logic.Equal: direct(Op.CMPEQ),
    logic.NotEqual: _not_equal,
    logic.Less: direct(Op.CMPLT),
    logic.LessEqual: direct(Op.CMPLE),
    logic.Greater: _greater,
    logic.GreaterEqual: _greater,
    logic.LogicalAnd: _and,
    logic.LogicalOr: _or,
    logic.LogicalXor: _xor,
    logic.LogicalNot: _not,
    logic.BitwiseAnd: _and,
    logic.BitwiseOr: _or,
    logic.BitwiseXor: _xor,
    logic.BitwiseNot: _not,
}
