"""SHAVE programs as bytes and as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver_layer.abi.shave import (
    FORMS,
    Form,
    Instruction,
    Op,
    ProgramError,
    decode,
    encode,
    float_bits,
)
from driver_layer.abi.shave_text import assemble, disassemble

REGISTER = st.integers(0, 31)


@st.composite
def instructions(draw: st.DrawFn) -> Instruction:
    op = draw(st.sampled_from(Op))
    form = FORMS[op]
    used = {
        Form.NONE: (),
        Form.DST_WINDOW: ("dst", "window"),
        Form.WINDOW_A: ("window", "a"),
        Form.DST_FLOAT: ("dst", "float"),
        Form.DST: ("dst",),
        Form.DST_A: ("dst", "a"),
        Form.DST_A_B: ("dst", "a", "b"),
        Form.DST_A_B_C: ("dst", "a", "b", "c"),
        Form.DST_A_INT: ("dst", "a", "int"),
    }[form]
    fields: dict[str, int] = {}
    for name in used:
        if name == "float":
            fields["imm"] = float_bits(draw(st.floats(width=32, allow_nan=False)))
        elif name == "int":
            fields["imm"] = draw(st.integers(0, 4096))
        else:
            fields[name] = draw(st.integers(0, 15) if name == "window" else REGISTER)
    return Instruction(op, **fields)


@given(st.lists(instructions(), max_size=20))
def test_a_program_is_preserved_in_bytes_and_in_text(program: list[Instruction]) -> None:
    assert decode(encode(program)) == program
    assert assemble(disassemble(program)) == program


def test_hand_written_text_is_assembled_and_disassembled() -> None:
    text = """
    ld    v0, w0        ; a row of x
    imm   v1, 1e-05
    mul   v2, v0, v0
    rsum  v2, v2
    fma   v2, v2, v1, v1
    rot   v3, v0, 16
    st    w1, v2
    end
    """
    program = assemble(text)
    assert [i.op for i in program] == [
        Op.LD,
        Op.IMM,
        Op.MUL,
        Op.RSUM,
        Op.FMA,
        Op.ROT,
        Op.ST,
        Op.END,
    ]
    assert disassemble(program).splitlines()[1] == "imm   v1, 1e-05"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("jmp 3", "line 1: unknown instruction 'jmp'"),
        ("\nadd v0, v1", "line 2: add takes 3 operands, not 2"),
        ("ld v0, v1", "line 1: 'v1' is not a window operand"),
        ("imm v0, one", "line 1: 'one' is not a float operand"),
    ],
)
def test_an_error_in_the_text_is_reported_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ProgramError, match=says):
        assemble(text)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_program_or_a_typed_error(code: bytes) -> None:
    try:
        program = decode(code)
    except ProgramError:
        return
    assert len(program) * 16 == len(code)
