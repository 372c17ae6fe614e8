"""Build flags: a strict reading of one line of text."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler_layer.errors import CompilerUsageError
from compiler_layer.in_driver.build_flags import parse_build_flags


def test_the_plugins_line_is_read() -> None:
    flags = parse_build_flags(
        '--inputs_precisions="0:I64 1:FP16" --inputs_layouts="0:NC 1:NCHW" '
        '--outputs_precisions="0:FP32" --outputs_layouts="0:**SCALAR**" '
        '--config NPU_TILES="4" NPU_COMPILATION_MODE_PARAMS="a=1 b=2" EMPTY="" '
    )
    assert flags.ports == {
        "inputs_precisions": {"0": "I64", "1": "FP16"},
        "inputs_layouts": {"0": "NC", "1": "NCHW"},
        "outputs_precisions": {"0": "FP32"},
        "outputs_layouts": {"0": "**SCALAR**"},
    }
    assert flags.config == {
        "NPU_TILES": "4",
        "NPU_COMPILATION_MODE_PARAMS": "a=1 b=2",
        "EMPTY": "",
    }


@pytest.mark.parametrize("text", ["", " ", "--config", "--config "])
def test_nothing_needs_to_be_set(text: str) -> None:
    flags = parse_build_flags(text)
    assert not flags.ports
    assert not flags.config


def test_names_of_ports_may_contain_colons() -> None:
    flags = parse_build_flags('--inputs_precisions="model/in:0:FP16"')
    assert flags.ports["inputs_precisions"] == {"model/in:0": "FP16"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nonsense", "build flags at 'nonsense'"),
        ('--config A="1" B=2', "build flags at 'B=2'"),
        ('--config A="1', "build flags at"),
        ('--config A="b"c"', "build flags at"),
        ('A="1" --config', "A before --config is unknown"),
        ('--outputs="1"', "--outputs before --config is unknown"),
        ('--inputs_precisions="FP16"', "not NAME:VALUE"),
        ('--inputs_precisions="0:"', "not NAME:VALUE"),
        ('--inputs_precisions="0:FP16 0:FP32"', "'0' occurs twice"),
    ],
)
def test_malformed_text_is_rejected_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(CompilerUsageError, match=reason):
        parse_build_flags(text)


@given(st.text(alphabet='-config_ A="1:\n', max_size=40))
def test_any_text_is_rejected_or_read(text: str) -> None:
    with contextlib.suppress(CompilerUsageError):
        parse_build_flags(text)
