"""Generation of a kernel's SHAVE program from its body."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from compiler_layer.codegen.activations import ACTIVATIONS
from compiler_layer.codegen.arithmetic import ARITHMETIC
from compiler_layer.codegen.program import Emit, ProgramBuilder, Register
from compiler_layer.codegen.rows import ROWS
from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.reduce import ALONG_AXES
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import FOUR_BIT
from compiler_layer.errors import UnsupportedModel
from compiler_layer.rewriting.match import scalar_of
from compiler_layer.rewriting.nibbles import can_widen
from driver_layer.abi.shave import Instruction

EMIT: dict[type[OvOp], Emit] = {**ARITHMETIC, **ACTIVATIONS, **ROWS}
"""Emitter of each row-wise op."""


def kernel_program(kernel: npu.Kernel) -> tuple[Instruction, ...]:
    """Generate a kernel's program.

    Its windows are the kernel's inputs, then the outputs, in order.

    Raises:
        UnsupportedModel: an op has no SHAVE form, or the program needs too many registers.
    """
    program = ProgramBuilder()
    body = kernel.body.block
    values: dict[SSAValue, Register] = {
        argument: program.load(window) for window, argument in enumerate(body.args)
    }
    for op in body.ops:
        if isinstance(op, npu.Yield):
            for window, value in enumerate(op.values, len(body.args)):
                program.store(window, values[value])
        elif isinstance(op, Constant):
            _constant(program, op, values)
        else:
            operands = [values[operand] for operand in _computed(op)]
            emit = EMIT.get(type(op)) if isinstance(op, OvOp) else None
            if emit is None or not isinstance(op, OvOp):
                raise UnsupportedModel(f"{op.name} has no SHAVE form")
            values[op.results[0]] = emit(program, op, operands)
    return program.finish()


def kernel_refusal(op: OvOp) -> str | None:
    """Return why SHAVE cannot run a row-wise op, or None; the op's emitter is tried."""
    emit = EMIT.get(type(op))
    if emit is None:
        return "without a SHAVE form"
    nibbles = [x for x in (*op.operands, *op.results) if element_of(x) in FOUR_BIT]
    # Only 4-bit weights are widened: the smallest element of a window is a byte. The matmul reads
    # weights that are gathered.
    widens = isinstance(op, Convert) and all(map(can_widen, nibbles))
    if nibbles and not (widens or isinstance(op, Dequantize)):
        return f"of {element_of(nibbles[0])}"
    program = ProgramBuilder()
    try:
        emit(program, op, [program.load(window) for window, _ in enumerate(_computed(op))])
    except UnsupportedModel:
        return f"of {element_of(op.results[0])}"
    return None


def _constant(program: ProgramBuilder, op: Constant, values: dict[SSAValue, Register]) -> None:
    number = scalar_of(op.output)
    if number is not None:
        values[op.output] = program.immediate(number)


def _computed(op: Operation) -> Sequence[SSAValue]:
    """Operands that registers hold; axes are part of the opcode."""
    return op.operands[:1] if isinstance(op, ALONG_AXES) else op.operands
