"""The instruction set of the simulated SHAVE.

A kernel runs over a grid of up to three outer dimensions. At each grid point, a vector register
holds one row: ``cols`` f32 values, or a single value that stands for the complete row. Rows are
loaded and stored through *windows*: regions of CMX given by address, element type, row length and
byte strides, so a program is independent of addresses, shapes and types. A load widens to f32, a
store rounds to the window's type. The set has no branches, so every program terminates.

The set is this project's own; the real one is not public. A program is data of a blob, and is
verified before it runs (``driver_layer.loader.kernels``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np

from driver_layer.abi.layout import record

REGISTERS = 32
MAX_WINDOWS = 16
MAX_INSTRUCTIONS = 1024
GRID_DIMS = 3
MAX_ELEMENTS = 1 << 22
"""Grid points × widest row of one invocation."""

INSTRUCTION = record(
    16,
    ("opcode", 0, "u1"),
    ("dst", 1, "u1"),
    ("a", 2, "u1"),
    ("b", 3, "u1"),
    ("c", 4, "u1"),
    ("window", 5, "u1"),
    ("imm", 8, "<u4"),
)
"""One instruction; fields that its form leaves unused are zero."""

KERNEL_ARGS = record(16, ("window_count", 0, "<u4"), ("grid", 4, ("<u4", (GRID_DIMS,))))
"""Head of a kernel's argument block; the windows follow."""

WINDOW = record(
    32,
    ("address", 0, "<u4"),
    ("cols", 4, "<u4"),
    ("col_stride", 8, "<u4"),
    ("strides", 12, ("<u4", (GRID_DIMS,))),
    ("type", 24, "u1"),
    ("access", 25, "u1"),
)
"""A region of the tile's CMX; strides are in bytes, one per grid dimension. A stride of 0 repeats
the row in that dimension."""


class Access(IntFlag):
    """Permitted accesses of a program to a window."""

    READ = 1
    WRITE = 2


class Form(IntEnum):
    """Fields that an instruction uses, in the order of its text."""

    NONE = 0
    DST_WINDOW = 1
    WINDOW_A = 2
    DST_FLOAT = 3
    DST = 4
    DST_A = 5
    DST_A_B = 6
    DST_A_B_C = 7
    DST_A_INT = 8


class Op(IntEnum):
    """Opcodes; comments state the result for each row."""

    END = 0  # end of the program
    LD = 1  # dst = the window's row
    ST = 2  # the window's row = a
    IMM = 3  # dst = the immediate
    IOTA = 4  # dst = 0, 1, 2 … over the columns of the kernel's widest window
    MOV = 5
    NEG = 6
    ABS = 7
    SQRT = 8
    RSQRT = 9  # 1 / sqrt(a)
    RCP = 10  # 1 / a
    EXP = 11
    LOG = 12
    SIN = 13
    COS = 14
    TANH = 15
    FLOOR = 16
    ERF = 17
    RINT = 18  # the nearest integer; a tie goes to the even one
    RE4M3 = 19  # the nearest f8e4m3, as a store rounds to it
    RE5M2 = 20
    ADD = 32
    SUB = 33
    MUL = 34
    DIV = 35
    MIN = 36
    MAX = 37
    POW = 38
    CMPEQ = 39  # 1 where a == b, else 0
    CMPLT = 40
    CMPLE = 41
    FMA = 64  # dst = a * b + c
    SEL = 65  # dst = b where a is not 0, else c
    RSUM = 80  # dst = sum of a over its columns
    RMAX = 81
    RMIN = 82
    ROT = 96  # dst[i] = a[(i + n) mod columns]


def _forms() -> dict[Op, Form]:
    special = {
        Op.END: Form.NONE,
        Op.LD: Form.DST_WINDOW,
        Op.ST: Form.WINDOW_A,
        Op.IMM: Form.DST_FLOAT,
        Op.IOTA: Form.DST,
        Op.FMA: Form.DST_A_B_C,
        Op.SEL: Form.DST_A_B_C,
        Op.RSUM: Form.DST_A,
        Op.RMAX: Form.DST_A,
        Op.RMIN: Form.DST_A,
        Op.ROT: Form.DST_A_INT,
    }
    unary = {op: Form.DST_A for op in Op if Op.MOV <= op < Op.ADD}
    binary = {op: Form.DST_A_B for op in Op if Op.ADD <= op < Op.FMA}
    return special | unary | binary


FORMS: dict[Op, Form] = _forms()
"""The form of each opcode."""

_OPCODES = frozenset(int(op) for op in Op)

REDUCTIONS = frozenset({Op.RSUM, Op.RMAX, Op.RMIN})
"""Opcodes whose result is a single value per row."""

ACROSS_COLUMNS = REDUCTIONS | {Op.IOTA, Op.ROT}
"""Opcodes whose columns depend on other columns or on their index: rows must not be split."""

OPERANDS: dict[Form, tuple[str, ...]] = {
    Form.NONE: (),
    Form.DST_WINDOW: ("dst", "window"),
    Form.WINDOW_A: ("window", "a"),
    Form.DST_FLOAT: ("dst", "float"),
    Form.DST: ("dst",),
    Form.DST_A: ("dst", "a"),
    Form.DST_A_B: ("dst", "a", "b"),
    Form.DST_A_B_C: ("dst", "a", "b", "c"),
    Form.DST_A_INT: ("dst", "a", "int"),
}
"""The fields that a form uses, in the order of its text; "float" and "int" are forms of ``imm``."""

SOURCES = {form: tuple(o for o in fields if o in "abc") for form, fields in OPERANDS.items()}
"""The register fields that a form reads."""

WRITES_REGISTER = frozenset(form for form, fields in OPERANDS.items() if "dst" in fields)
"""The forms with a destination register."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One decoded instruction; ``imm`` is the raw 32 bits."""

    op: Op
    dst: int = 0
    a: int = 0
    b: int = 0
    c: int = 0
    window: int = 0
    imm: int = 0

    @property
    def form(self) -> Form:
        """Fields that the instruction uses."""
        return FORMS[self.op]

    @property
    def sources(self) -> tuple[int, ...]:
        """The registers that the instruction reads."""
        return tuple(getattr(self, field) for field in SOURCES[self.form])

    @property
    def immediate(self) -> float:
        """The immediate of IMM."""
        return float(np.array(self.imm, "<u4").view("<f4"))


def float_bits(value: float) -> int:
    """Return the 32 bits of an f32 immediate."""
    return int(np.array(value, "<f4").view("<u4"))


class ProgramError(ValueError):
    """Bytes or text that are not a program; the message names the instruction."""


def encode(program: list[Instruction]) -> bytes:
    """Encode a program, 16 bytes for each instruction."""
    code = np.zeros(len(program), INSTRUCTION)
    for index, i in enumerate(program):
        code[index] = (i.op, i.dst, i.a, i.b, i.c, i.window, i.imm)
    return code.tobytes()


def decode(code: bytes) -> list[Instruction]:
    """Decode a program.

    Raises:
        ProgramError: the length is not a multiple of 16, or an opcode is unknown.
    """
    if len(code) % INSTRUCTION.itemsize:
        raise ProgramError(f"a program of {len(code)} bytes is not a multiple of 16 bytes")
    program: list[Instruction] = []
    for index, (opcode, *fields) in enumerate(np.frombuffer(code, INSTRUCTION).tolist()):
        if opcode not in _OPCODES:
            raise ProgramError(f"instruction {index}: unknown opcode {opcode}")
        program.append(Instruction(Op(opcode), *fields))
    return program
