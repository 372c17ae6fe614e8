"""A mixture's programs as bytes: round trip, and rejection of damaged bytes."""

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


def test_a_written_container_is_read_back():
    assert read_container(WRITTEN) == MIXTURE


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (b"", "begins with other bytes"),
        (b"\x7fELF" + WRITTEN[4:], "begins with other bytes"),
        (WRITTEN[:-1], "end within the content at"),
        (WRITTEN + b" ", "are expected"),
        (WRITTEN[:8] + bytes(8) + WRITTEN[16:], "header cannot be read"),
        (WRITTEN[:8] + b"\xff" * 8 + WRITTEN[16:], "end within the content at"),
        (WRITTEN.replace(b'"program": 1', b'"program": 7'), "program is missing"),
        (WRITTEN.replace(b'"i64"', b'"i99"'), "unknown element types"),
        (WRITTEN.replace(b"[1, 3, 8]", b"[1, 4, 8]"), "of another count than 3 tokens"),
        (WRITTEN.replace(b"[3, 2, 1]", b"[3, 1, 1]"), "of another count than 3 tokens"),
        (WRITTEN.replace(b'"count": 2', b'"count": 0'), "header cannot be read"),
        (WRITTEN.replace(b'{"a": 1', b'{"a":-1'), "header cannot be read"),
    ],
)
def test_a_damaged_container_is_rejected(damaged, why):
    assert damaged != WRITTEN
    with pytest.raises(DeviceError, match=why):
        read_container(damaged)


@given(st.integers(0, len(WRITTEN) - 1), st.integers(1, 255))
def test_any_damage_results_in_a_mixture_or_an_error(at, flip):
    damaged = bytearray(WRITTEN)
    damaged[at] ^= flip
    try:
        found = read_container(bytes(damaged))
    except DeviceError:
        return
    assert all(expert.program < len(found.programs) for expert in found.routed.experts)
