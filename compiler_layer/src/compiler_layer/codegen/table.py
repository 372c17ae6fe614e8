"""What the tables of emitters have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler_layer.codegen.program import ProgramBuilder, Register
from compiler_layer.dialects.ov.op import OvOp
from driver_layer.abi.shave import Op

Emit = Callable[[ProgramBuilder, OvOp, Sequence[Register]], Register]
"""Appends the instructions of an op, given its operands' registers; gives its result's."""


def direct(opcode: Op) -> Emit:
    """The emitter of an op that is one instruction."""

    def emit(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
        del op
        return p.compute(opcode, *x)

    return emit
