"""Parts as bytes: round trip, and rejection of damaged bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.execution.partition.container import (
    Call,
    FunctionProgram,
    PartPrograms,
    read_container,
    write_container,
)

PARTS = PartPrograms(
    functions=[
        FunctionProgram("", b"between", {"b": [b"1", b"2"], "a": [b"xx", b"yy"]}),
        FunctionProgram("ATTN", b"a group", {}),
    ],
    calls=(
        Call(function=0, names={"w": "w0"}),
        Call(function=1, names={}),
        Call(function=0, names={"w": "w1", "link_0": "link_1"}),
    ),
    links={name: TensorInfo(name, "f16", (1, 4)) for name in ("link_0", "link_1")},
    ports=("x", "y"),
    unread={"x": TensorInfo("x", "i64", (2,))},
)
WRITTEN = write_container(PARTS)


def test_a_written_container_is_read_back():
    assert read_container(WRITTEN) == PARTS


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (b"", "begins with other bytes"),
        (b"\x7fELF" + WRITTEN[4:], "begins with other bytes"),
        (WRITTEN[:-1], "end within the content at"),
        (WRITTEN + b" ", "are expected"),
        (WRITTEN[:8] + bytes(8) + WRITTEN[16:], "header cannot be read"),
        (WRITTEN[:8] + b"\xff" * 8 + WRITTEN[16:], "end within the content at"),
        (
            WRITTEN.replace(b'"function": 1', b'"function": 7'),
            "a function that it does not contain",
        ),
        (
            WRITTEN.replace(b'"function": 1', b'"function": 0'),
            "a function that it does not contain",
        ),
        (WRITTEN.replace(b'"f16"', b'"f99"'), "tensors of unknown types f99"),
        (WRITTEN.replace(b'{"a": 2', b'{"a":-2'), "header cannot be read"),
    ],
)
def test_a_damaged_container_is_rejected(damaged, why):
    assert damaged != WRITTEN
    with pytest.raises(DeviceError, match=why):
        read_container(damaged)


@given(st.integers(0, len(WRITTEN) - 1), st.integers(1, 255))
def test_any_damage_results_in_parts_or_an_error(at, flip):
    damaged = bytearray(WRITTEN)
    damaged[at] ^= flip
    try:
        found = read_container(bytes(damaged))
    except DeviceError:
        return
    assert {call.function for call in found.calls} == set(range(len(found.functions)))
