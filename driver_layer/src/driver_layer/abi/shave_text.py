"""SHAVE programs as text: the assembler and the disassembler.

One instruction a line, ``;`` begins a comment::

    ld    v0, w0        ; a row of x
    mul   v1, v0, v0
    rsum  v1, v1
    st    w1, v1
    end
"""

from __future__ import annotations

import math
import re

import numpy as np

from driver_layer.abi.shave import FORMS, OPERANDS, Instruction, Op, ProgramError, float_bits

_OPCODES = {op.name.lower(): op for op in Op}


def disassemble(program: list[Instruction]) -> str:
    """Write a program as text, from which ``assemble`` returns the same program."""
    return "\n".join(_line(instruction) for instruction in program) + "\n"


def assemble(text: str) -> list[Instruction]:
    """Read a program from text.

    Raises:
        ProgramError: a line is not an instruction; the message names the line.
    """
    program: list[Instruction] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = re.split(r"[\s,]+", line.split(";")[0].strip())
        if words == [""]:
            continue
        program.append(_instruction(words[0], words[1:], number))
    return program


def _line(i: Instruction) -> str:
    words = {
        "dst": f"v{i.dst}",
        "a": f"v{i.a}",
        "b": f"v{i.b}",
        "c": f"v{i.c}",
        "window": f"w{i.window}",
        "int": str(i.imm),
        "float": _float_text(i.immediate),
    }
    operands = ", ".join(words[kind] for kind in OPERANDS[i.form])
    return f"{i.op.name.lower():<6}{operands}".rstrip()


def _float_text(value: float) -> str:
    """Return the shortest decimal that rounds to the same f32."""
    if not math.isfinite(value):
        return str(value)
    with np.errstate(over="ignore"):  # fewer digits may round the largest values up to infinity
        return next(
            t for d in range(1, 10) if float_bits(float(t := f"{value:.{d}g}")) == float_bits(value)
        )


def _instruction(name: str, operands: list[str], line: int) -> Instruction:
    op = _OPCODES.get(name)
    if op is None:
        raise ProgramError(f"line {line}: unknown instruction {name!r}")
    kinds = OPERANDS[FORMS[op]]
    if len(operands) != len(kinds):
        raise ProgramError(f"line {line}: {name} takes {len(kinds)} operands, not {len(operands)}")
    fields: dict[str, int] = {}
    for kind, word in zip(kinds, operands, strict=True):
        field = "imm" if kind in ("int", "float") else kind
        fields[field] = _operand(kind, word, line)
    return Instruction(op, **fields)


def _operand(kind: str, word: str, line: int) -> int:
    try:
        if kind == "float":
            return float_bits(float(word))
        if kind == "int":
            return int(word)
        prefix = "w" if kind == "window" else "v"
        if not word.startswith(prefix):
            raise ValueError
        return int(word[1:])
    except ValueError:
        raise ProgramError(f"line {line}: {word!r} is not a {kind} operand") from None
