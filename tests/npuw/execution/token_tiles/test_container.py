"""A tile's program as bytes: what is written comes back, and what is damaged is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.errors import DeviceError
from npuw_layer.execution.token_tiles.container import (
    MaskEntry,
    TileProgram,
    Tiling,
    read_container,
    write_container,
)

TILING = Tiling(rows=8, size=3, ports=("x", "y"), mask=MaskEntry(element="i64", columns=9))
CONTENT = TileProgram(TILING, b"a program")
WRITTEN = write_container(CONTENT)


def test_what_is_written_comes_back() -> None:
    assert read_container(WRITTEN) == CONTENT


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (b"", "does not begin as one"),
        (WRITTEN[:-1], "within what is"),
        (WRITTEN + b" ", "are expected"),
        (WRITTEN.replace(b'"i64"', b'"i99"'), "a mask of 9 i99"),
        (WRITTEN.replace(b'"columns": 9', b'"columns": 7'), "8 rows with a mask of 7"),
        (WRITTEN.replace(b'"size": 3', b'"size": 9'), "tiles of 9 rows in a block of 8"),
        (WRITTEN.replace(b'"size": 3', b'"size": 0'), "header cannot be read"),
        (WRITTEN.replace(b'["x", "y"]', b"[        ]"), "header cannot be read"),
    ],
)
def test_what_is_damaged_is_refused(damaged: bytes, why: str) -> None:
    assert damaged != WRITTEN
    with pytest.raises(DeviceError, match=rf"(?s)NPUW_SPATIAL.*{why}"):
        read_container(damaged)


@given(st.integers(0, len(WRITTEN) - 1), st.integers(1, 255))
def test_no_damage_gives_anything_but_a_tiling_or_an_error(at: int, flip: int) -> None:
    damaged = bytearray(WRITTEN)
    damaged[at] ^= flip
    try:
        found = read_container(bytes(damaged)).tiling
    except DeviceError:
        return
    assert 1 <= found.size <= found.rows
