"""Frames that are taken of a video, and their times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from genai_layer.embedding.folder import Sampling, frames_to_take, read_sampling, seconds_of
from genai_layer.errors import ModelError, PromptError
from genai_layer.vision.folder import Settings
from genai_layer.vision.visuals import VideoMetadata

TWO_A_SECOND = Sampling(active=True, fps=2.0, count=0, least=4, most=768)


def test_frames_are_taken_by_time() -> None:
    assert frames_to_take(48, VideoMetadata(fps=8.0), TWO_A_SECOND)[::4] == [0, 17, 34]
    assert len(frames_to_take(48, VideoMetadata(fps=8.0), TWO_A_SECOND)) == 12
    unknown = frames_to_take(96, VideoMetadata(), TWO_A_SECOND)
    assert (len(unknown), unknown[-1]) == (8, 95)


def test_the_number_of_frames_is_limited() -> None:
    assert frames_to_take(6, VideoMetadata(), TWO_A_SECOND) == [0, 2, 3, 5]
    assert frames_to_take(3, VideoMetadata(), TWO_A_SECOND) == [0, 1, 2]
    few = replace(TWO_A_SECOND, most=5)
    assert len(frames_to_take(600, VideoMetadata(), few)) == 5
    assert frames_to_take(5, VideoMetadata(), replace(TWO_A_SECOND, fps=0.0)) == [0, 1, 2, 3, 4]
    assert frames_to_take(9, VideoMetadata(), replace(TWO_A_SECOND, fps=0.0, count=3)) == [0, 4, 8]


def test_chosen_frames_precede_the_settings() -> None:
    assert frames_to_take(9, VideoMetadata(1.0, [7, 2]), TWO_A_SECOND) == [7, 2]
    assert frames_to_take(3, VideoMetadata(), replace(TWO_A_SECOND, active=False)) == [0, 1, 2]


def test_too_few_frames_are_rejected() -> None:
    with pytest.raises(PromptError, match="has 1 frames"):
        frames_to_take(1, VideoMetadata(), TWO_A_SECOND)
    with pytest.raises(PromptError, match="choose 9 of them"):
        frames_to_take(4, VideoMetadata(), replace(TWO_A_SECOND, fps=0.0, count=9))


def test_a_group_has_the_mean_time_of_its_frames() -> None:
    assert seconds_of([0, 1, 4, 7, 9], 2.0, 2) == [0.25, 2.75, 4.5]
    assert seconds_of([0, 24], 0.0, 2) == [0.5]
    for fps in (-1.0, float("nan"), float("inf")):
        with pytest.raises(PromptError, match=f"fps = {fps}"):
            seconds_of([0, 1], fps, 2)
        with pytest.raises(PromptError, match=f"fps = {fps}"):
            frames_to_take(9, VideoMetadata(fps), TWO_A_SECOND)
    assert len(frames_to_take(9, VideoMetadata(1e-320), TWO_A_SECOND)) == 9


@pytest.mark.parametrize(
    "values",
    [
        {"fps": "2"},
        {"fps": -1},
        {"fps": float("inf")},
        {"do_sample_frames": 1},
        {"num_frames": -1},
        {"min_frames": 1.5},
    ],
    ids=str,
)
def test_wrong_settings_are_rejected(values: dict[str, object]) -> None:
    with pytest.raises(ModelError, match=next(iter(values))):
        read_sampling(Settings(Path("video.json"), values))


def test_settings_choose_by_time_or_by_number() -> None:
    path = Path("video.json")
    with pytest.raises(ModelError, match="exclude each other"):
        read_sampling(Settings(path, {"fps": 2, "num_frames": 8}))
    assert read_sampling(Settings(path, {})) == Sampling(False, 0.0, 0, 0, 0)
