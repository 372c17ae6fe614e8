"""Activation functions in SHAVE instructions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler_layer.codegen.program import Emit, ProgramBuilder, Register, direct
from compiler_layer.dialects.ov import activation
from compiler_layer.dialects.ov.op import OvOp
from driver_layer.abi.shave import Op


def _sigmoid(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    power = p.compute(Op.EXP, p.compute(Op.NEG, x[0]))
    return p.compute(Op.RCP, p.compute(Op.ADD, power, p.immediate(1)))


def _swish(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    inner = p.compute(Op.MUL, *x) if len(x) > 1 else x[0]
    return p.compute(Op.MUL, x[0], _sigmoid(p, op, [inner]))


def _relu(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    return p.compute(Op.MAX, x[0], p.immediate(0))


def _clamped(p: ProgramBuilder, x: Register, low: float, high: float) -> Register:
    return p.compute(Op.MIN, p.compute(Op.MAX, x, p.immediate(low)), p.immediate(high))


def _clamp(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    assert isinstance(op, activation.Clamp)
    return _clamped(p, x[0], op.min.value.data, op.max.value.data)


def _softplus(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    """max(x, 0) + log(1 + exp(-|x|)), which never overflows."""
    power = p.compute(Op.EXP, p.compute(Op.NEG, p.compute(Op.ABS, x[0])))
    log = p.compute(Op.LOG, p.compute(Op.ADD, power, p.immediate(1)))
    return p.compute(Op.ADD, _relu(p, op, x), log)


def _hswish(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    del op
    gate = _clamped(p, p.compute(Op.ADD, x[0], p.immediate(3)), 0, 6)
    return p.compute(Op.MUL, p.compute(Op.MUL, x[0], gate), p.immediate(1 / 6))


def _gelu(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
    assert isinstance(op, activation.Gelu)
    if op.approximation_mode.data.upper() == "TANH":
        cube = p.compute(Op.MUL, p.compute(Op.MUL, x[0], x[0]), x[0])
        sum_ = p.compute(Op.FMA, cube, p.immediate(0.044715), x[0])
        inner = p.compute(Op.TANH, p.compute(Op.MUL, sum_, p.immediate(math.sqrt(2 / math.pi))))
    else:
        inner = p.compute(Op.ERF, p.compute(Op.MUL, x[0], p.immediate(math.sqrt(0.5))))
    half = p.compute(Op.MUL, x[0], p.immediate(0.5))
    return p.compute(Op.FMA, half, inner, half)


ACTIVATIONS: dict[type[OvOp], Emit] = {
    activation.Tanh: direct(Op.TANH),
    activation.Erf: direct(Op.ERF),
    activation.Sigmoid: _sigmoid,
    activation.Swish: _swish,
    activation.Relu: _relu,
    activation.Clamp: _clamp,
    activation.Softplus: _softplus,
    activation.HSwish: _hswish,
    activation.Gelu: _gelu,
}
