"""A tile's program as bytes: round trip, and rejection of damaged bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.errors import DeviceError
from npuw_layer.execution.token_tiles.container import (
    MaskEntry,
    Tiling,
    read_container,
    write_container,
)

TILING = Tiling(rows=8, size=3, ports=("x", "y"), mask=MaskEntry(element="i64", columns=9))
WRITTEN = write_container(TILING, b"a program")


def test_a_written_container_is_read_back() -> None:
    assert read_container(WRITTEN) == (TILING, b"a program")


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (b"", "begins with other bytes"),
        (WRITTEN[:-1], "end within the content at"),
        (WRITTEN + b" ", "are expected"),
        (WRITTEN.replace(b'"i64"', b'"i99"'), "mask 9 i99"),
        (WRITTEN.replace(b'"columns": 9', b'"columns": 7'), "mask 7 i64 does not fit 8 rows"),
        (WRITTEN.replace(b'"size": 3', b'"size": 9'), "tiles of 9 rows do not fit a block of 8"),
        (WRITTEN.replace(b'"size": 3', b'"size": 0'), "header cannot be read"),
        (WRITTEN.replace(b'["x", "y"]', b"[        ]"), "header cannot be read"),
    ],
)
def test_a_damaged_container_is_rejected(damaged: bytes, why: str) -> None:
    assert damaged != WRITTEN
    with pytest.raises(DeviceError, match=rf"(?s)NPUW_SPATIAL.*{why}"):
        read_container(damaged)


@given(st.integers(0, len(WRITTEN) - 1), st.integers(1, 255))
def test_any_damage_results_in_a_tiling_or_an_error(at: int, flip: int) -> None:
    damaged = bytearray(WRITTEN)
    damaged[at] ^= flip
    try:
        found, _ = read_container(bytes(damaged))
    except DeviceError:
        return
    assert 1 <= found.size <= found.rows
