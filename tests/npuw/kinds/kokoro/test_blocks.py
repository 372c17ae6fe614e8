"""Blocks of frames: they overlap with their neighbours, and each frame is kept once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.kinds.kokoro.blocks import AudioBlock, plan_blocks


@st.composite
def cuts(draw: st.DrawFn) -> tuple[int, int, int]:
    size = draw(st.integers(1, 60))
    return draw(st.integers(1, 400)), size, draw(st.integers(0, size - 1))


@given(cuts())
def test_each_frame_is_kept_once_in_order(cut: tuple[int, int, int]) -> None:
    frames, size, overlap = cut
    kept: list[int] = []
    for block in plan_blocks(frames, size, overlap):
        assert 0 <= block.begin < block.end <= frames
        assert block.end - block.begin <= size
        heard = range(block.begin, block.end)
        kept += heard[block.skip : block.skip + block.keep]
    assert kept == [*range(frames)]


@given(cuts())
def test_kept_frames_have_context_on_both_sides(cut: tuple[int, int, int]) -> None:
    frames, size, overlap = cut
    for block in plan_blocks(frames, size, overlap):
        first = block.begin + block.skip
        assert first - block.begin == min(overlap // 2, first)
        behind = frames - first - block.keep
        assert block.end - first - block.keep >= min(overlap // 2, behind)


@given(cuts(), st.integers(1, 50))
def test_samples_follow_from_the_frames(cut: tuple[int, int, int], each: int) -> None:
    frames, size, overlap = cut
    kept = [block.samples(each * size, size) for block in plan_blocks(frames, size, overlap)]
    assert sum(part.stop - part.start for part in kept) == each * frames


def test_fractional_samples_are_rounded_and_stay_in_range() -> None:
    assert AudioBlock(0, 3, 1, 2).samples(10, 4) == slice(3, 8)  # 2.5 and 5 samples
    assert AudioBlock(0, 4, 3, 2).samples(10, 4) == slice(8, 10)
    assert AudioBlock(0, 9, 9, 2).samples(10, 4) == slice(10, 10)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (200, [AudioBlock(0, 200, 0, 180), AudioBlock(170, 200, 10, 20)]),
        (180, [AudioBlock(0, 180, 0, 180)]),
        (541, [AudioBlock(0, 200, 0, 180), AudioBlock(170, 370, 10, 180),
               AudioBlock(350, 541, 10, 180), AudioBlock(530, 541, 10, 1)]),
    ],
)  # fmt: skip
def test_blocks_are_placed_as_in_npuw(frames: int, expected: list[AudioBlock]) -> None:
    assert plan_blocks(frames, 200, 20) == expected
