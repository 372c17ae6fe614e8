"""A mixture's programs as bytes: what is written comes back, and what is damaged is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.errors import DeviceError
from npuw_layer.execution.experts.container import (
    ExpertEntry,
    PortEntry,
    Routed,
    RoutedPrograms,
    read_container,
    write_container,
)

MIXTURE = RoutedPrograms(
    routed=Routed(
        rows=PortEntry(name="x", element="f16", shape=(1, 3, 8)),
        ids=PortEntry(name="ids", element="i64", shape=(3, 2)),
        weights=PortEntry(name="w", element="f16", shape=(3, 2, 1)),
        output=PortEntry(name="y", element="f16", shape=(3, 8)),
        count=2,
        experts=(
            ExpertEntry(number=0, program=0, names={}),
            ExpertEntry(number=1, program=1, names={"a": "b"}),
        ),
    ),
    programs=[b"one expert", b"another"],
    literals={"b": b"123", "a": b"4"},
)
WRITTEN = write_container(MIXTURE)


def test_what_is_written_comes_back():
    assert read_container(WRITTEN) == MIXTURE


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (b"", "does not begin as one"),
        (b"\x7fELF" + WRITTEN[4:], "does not begin as one"),
        (WRITTEN[:-1], "within what is"),
        (WRITTEN + b" ", "are expected"),
        (WRITTEN[:8] + bytes(8) + WRITTEN[16:], "header cannot be read"),
        (WRITTEN[:8] + b"\xff" * 8 + WRITTEN[16:], "within what is"),
        (WRITTEN.replace(b'"program": 1', b'"program": 7'), "program is missing"),
        (WRITTEN.replace(b'"i64"', b'"i99"'), "elements that there are not"),
        (WRITTEN.replace(b"[1, 3, 8]", b"[1, 4, 8]"), "not those of 3 tokens"),
        (WRITTEN.replace(b"[3, 2, 1]", b"[3, 1, 1]"), "not those of 3 tokens"),
        (WRITTEN.replace(b'"count": 2', b'"count": 0'), "header cannot be read"),
        (WRITTEN.replace(b'{"a": 1', b'{"a":-1'), "header cannot be read"),
    ],
)
def test_what_is_damaged_is_refused(damaged, why):
    assert damaged != WRITTEN
    with pytest.raises(DeviceError, match=why):
        read_container(damaged)


@given(st.integers(0, len(WRITTEN) - 1), st.integers(1, 255))
def test_no_damage_gives_anything_but_a_mixture_or_an_error(at, flip):
    damaged = bytearray(WRITTEN)
    damaged[at] ^= flip
    try:
        found = read_container(bytes(damaged))
    except DeviceError:
        return
    assert all(expert.program < len(found.programs) for expert in found.routed.experts)
