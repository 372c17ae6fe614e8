"""An offloaded model's parts as bytes: round trip, and rejection of damaged bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler_layer.partition.compiled import CompiledParts
from npuw_layer.errors import DeviceError
from npuw_layer.execution.offload.container import read_container, write_container

PIECES = CompiledParts(
    prologue=b"first",
    block=b"again and again",
    epilogue=b"last",
    count=3,
    states={"k": ("k0", "k1", "k2")},
    weights={"w": ("w0", "w1", "w2")},
    literals={"b": (b"1", b"2", b"3"), "a": (b"xx", b"yy", b"zz")},
)
WRITTEN = write_container(PIECES)


def test_a_written_container_is_read_back():
    found = read_container(WRITTEN)
    assert found == PIECES
    assert isinstance(found.block, memoryview)


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (b"", "begins with other bytes"),
        (b"\x7fELF" + WRITTEN[4:], "begins with other bytes"),
        (WRITTEN[:-1], "end within the content at"),
        (WRITTEN + b" ", "are expected"),
        (WRITTEN[:8] + bytes(8) + WRITTEN[16:], "header cannot be read"),
        (WRITTEN[:8] + b"\xff" * 8 + WRITTEN[16:], "end within the content at"),
        (WRITTEN.replace(b'"count": 3', b'"count": 2'), "for its 2 layers"),
        (WRITTEN.replace(b'"count": 3', b'"count": 0'), "header cannot be read"),
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
    assert len(found.states["k"]) == found.count if "k" in found.states else True
