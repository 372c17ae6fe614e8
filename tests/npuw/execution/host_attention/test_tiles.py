"""Tiles of stored rows, and the bytes of an attention's programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_attention.attentions import Attention
from npuw_layer.errors import DeviceError
from npuw_layer.execution.host_attention.container import (
    TilePrograms,
    read_container,
    write_container,
)
from npuw_layer.execution.host_attention.pattern import find_attention
from npuw_layer.execution.row_tiles import ROW_STEP, cut_tiles, tile_length

pieces = st.lists(st.integers(1, 3000), min_size=1, max_size=5)


@given(pieces, st.integers(1, 2000))
def test_every_row_is_in_one_tile_of_one_cache_part(pieces: list[int], longest: int) -> None:
    length = tile_length(pieces, longest)
    assert length < longest + ROW_STEP
    tiles = [*cut_tiles(pieces, length)]
    assert [row for tile in tiles for row in range(tile.own, tile.end)] == [*range(sum(pieces))]
    for tile in tiles:
        before = sum(pieces[: tile.part])
        assert tile.first == before + tile.begin
        assert 0 <= tile.first <= tile.own
        assert tile.end <= before + pieces[tile.part]
        assert tile.begin + length <= pieces[tile.part] or tile.begin == 0


@pytest.mark.parametrize(
    ("past", "longest", "expected"),
    [(3072, 1024, (1024, 3)), (1151, 1024, (576, 2)), (4223, 1024, (848, 5)), (31, 64, (31, 1))],
)
def test_tiles_are_as_few_and_then_as_short_as_possible(past, longest, expected) -> None:
    length = tile_length([past], longest)
    assert (length, len([*cut_tiles([past], length)])) == expected


def programs() -> TilePrograms:
    attention = find_attention(Attention(i8=True).graph())
    assert attention is not None
    return TilePrograms(attention, 16, b"a tile", b"the last one")


WRITTEN = write_container(programs())


def test_a_written_container_is_read_back() -> None:
    assert read_container(WRITTEN) == programs()


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (b"", "begins with other bytes"),
        (b"\x7fELF" + WRITTEN[4:], "begins with other bytes"),
        (WRITTEN[:-1], "end within the content at"),
        (WRITTEN + b" ", "are expected"),
        (WRITTEN[:8] + b"\xff" * 8 + WRITTEN[16:], "end within the content at"),
        (WRITTEN.replace(b'"rows": 16', b'"rows": 96'), "more rows than the cache"),
        (WRITTEN.replace(b'"heads": 2', b'"heads": 0'), "header cannot be read"),
        (WRITTEN.replace(b'"mask": [1, 1, 8]', b'"mask": [1, 3, 8]'), "header cannot be read"),
        (WRITTEN.replace(b'"parts": [40]', b'"parts": [39]'), "header cannot be read"),
        (WRITTEN.replace(b'"parts": [40]', b'"parts":[9,31]'), "header cannot be read"),
        (WRITTEN.replace(b'"blobs": [6', b'"blobs": [-'), "header cannot be read"),
    ],
)
def test_a_damaged_container_is_rejected(damaged: bytes, why: str) -> None:
    assert damaged != WRITTEN
    with pytest.raises(DeviceError, match=why):
        read_container(damaged)


@given(st.integers(0, len(WRITTEN) - 1), st.integers(1, 255))
def test_any_damage_results_in_programs_or_an_error(at: int, flip: int) -> None:
    damaged = bytearray(WRITTEN)
    damaged[at] ^= flip
    try:
        found = read_container(bytes(damaged))
    except DeviceError:
        return
    assert found.rows <= found.attention.shape.past
