"""Parts as bytes: what is written comes back, and what is damaged is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.execution.partition.container import (
    Call,
    FunctionProgram,
    Parts,
    read_container,
    write_container,
)

PARTS = Parts(
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


def test_what_is_written_comes_back():
    assert read_container(WRITTEN) == PARTS


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (b"", "does not begin as one"),
        (b"\x7fELF" + WRITTEN[4:], "does not begin as one"),
        (WRITTEN[:-1], "within what is"),
        (WRITTEN + b" ", "are expected"),
        (WRITTEN[:8] + bytes(8) + WRITTEN[16:], "header cannot be read"),
        (WRITTEN[:8] + b"\xff" * 8 + WRITTEN[16:], "within what is"),
        (WRITTEN.replace(b'"function": 1', b'"function": 7'), "other functions than it has"),
        (WRITTEN.replace(b'"function": 1', b'"function": 0'), "other functions than it has"),
        (WRITTEN.replace(b'"f16"', b'"f99"'), "tensors of f99"),
        (WRITTEN.replace(b'{"a": 2', b'{"a":-2'), "header cannot be read"),
    ],
)
def test_what_is_damaged_is_refused(damaged, why):
    assert damaged != WRITTEN
    with pytest.raises(DeviceError, match=why):
        read_container(damaged)


@given(st.integers(0, len(WRITTEN) - 1), st.integers(1, 255))
def test_no_damage_gives_anything_but_parts_or_an_error(at, flip):
    damaged = bytearray(WRITTEN)
    damaged[at] ^= flip
    try:
        found = read_container(bytes(damaged))
    except DeviceError:
        return
    assert {call.function for call in found.calls} == set(range(len(found.functions)))
