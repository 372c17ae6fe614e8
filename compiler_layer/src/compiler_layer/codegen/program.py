"""Builder of SHAVE programs over virtual registers, and their allocation to real registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.errors import UnsupportedModel
from driver_layer.abi.shave import REGISTERS, Instruction, Op, float_bits

Register = int
"""A virtual register."""


@dataclass(frozen=True, slots=True)
class _Virtual:
    """An instruction over virtual registers."""

    op: Op
    dst: Register | None
    sources: tuple[Register, ...]
    window: int = 0
    imm: int = 0


class ProgramBuilder:
    """Builder of one program."""

    def __init__(self) -> None:
        self._code: list[_Virtual] = []
        self._registers = 0
        self._immediates: dict[int, Register] = {}

    def load(self, window: int) -> Register:
        """Read a row of a window."""
        return self.compute(Op.LD, window=window)

    def store(self, window: int, value: Register) -> None:
        """Write a row of a window."""
        self._code.append(_Virtual(Op.ST, None, (value,), window=window))

    def immediate(self, value: float) -> Register:
        """Return the register of a number; equal numbers share one."""
        bits = float_bits(value)
        if bits not in self._immediates:
            self._immediates[bits] = self.compute(Op.IMM, imm=bits)
        return self._immediates[bits]

    def compute(self, op: Op, *sources: Register, window: int = 0, imm: int = 0) -> Register:
        """Apply an opcode to registers; return the register of the result."""
        register = self._registers
        self._registers += 1
        self._code.append(_Virtual(op, register, sources, window, imm))
        return register

    def finish(self) -> tuple[Instruction, ...]:
        """Return the program without dead instructions.

        Raises:
            UnsupportedModel: more values are live together than registers exist.
        """
        return (*_allocated(_without_dead(self._code)), Instruction(Op.END))


def _without_dead(code: list[_Virtual]) -> list[_Virtual]:
    used: set[Register] = set()
    kept: list[_Virtual] = []
    for one in reversed(code):
        if one.dst is None or one.dst in used:
            used.update(one.sources)
            kept.append(one)
    return kept[::-1]


def _allocated(code: list[_Virtual]) -> list[Instruction]:
    """Assign a real register to each virtual one, from its first to its last use."""
    last_use = {source: at for at, one in enumerate(code) for source in one.sources}
    free = list(range(REGISTERS))[::-1]
    real: dict[Register, int] = {}
    program: list[Instruction] = []
    for at, one in enumerate(code):
        a, b, c = (*(real[source] for source in one.sources), 0, 0, 0)[:3]
        free += [real[s] for s in dict.fromkeys(one.sources) if last_use[s] == at]
        dst = 0
        if one.dst is not None:
            if not free:
                raise UnsupportedModel(f"a kernel needs more than {REGISTERS} registers")
            dst = real[one.dst] = free.pop()
        program.append(Instruction(one.op, dst, a, b, c, one.window, one.imm))
    return program


Emit = Callable[[ProgramBuilder, OvOp, Sequence[Register]], Register]
"""Function that appends an op's instructions to a program, and returns the result's register."""


def direct(opcode: Op) -> Emit:
    """Return the emitter of an op that takes one instruction."""

    def emit(p: ProgramBuilder, op: OvOp, x: Sequence[Register]) -> Register:
        del op
        return p.compute(opcode, *x)

    return emit
