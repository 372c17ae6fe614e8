"""Videos, and the choice of their frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from genai_layer import PromptError, Tensor, VideoMetadata
from genai_layer.vision.visuals import read_videos

FILM = np.arange(4, dtype=np.uint8).reshape(4, 1, 1, 1) * np.ones((1, 2, 3, 3), np.uint8)


def frames(given: Any, *chosen: Any) -> list[list[int]]:
    """Return the numbers of the frames to encode."""
    metadata = [VideoMetadata(25.0, each) for each in chosen]
    return [video[:, 0, 0, 0].tolist() for video in read_videos(given, metadata)]


def test_all_frames_are_encoded_unless_some_are_chosen() -> None:
    assert frames(None) == []
    assert frames(FILM) == frames(Tensor(FILM)) == frames([FILM], []) == [[0, 1, 2, 3]]
    assert frames([FILM, FILM], [3, 0, 0], []) == [[3, 0, 0], [0, 1, 2, 3]]
    assert frames([FILM], np.array([2, 1])) == [[2, 1]]
    assert VideoMetadata() == VideoMetadata(0.0, [])


@pytest.mark.parametrize(
    ("given", "metadata", "message"),
    [
        (FILM[0], None, r"a video has shape \[2, 3, 3\]; pass \[frames, H, W, 3\]"),
        (FILM[:0], None, "with frames"),
        (FILM[..., :1], None, "a video has shape"),
        (FILM.astype(np.float32), None, "pass uint8 from 0 to 255"),
        ("a.mp4", None, "pass a tensor, an array"),
        ([FILM], [VideoMetadata(), VideoMetadata()], "has 2 items for 1 videos"),
        ([FILM], [{"fps": 2}], "pass a list of VideoMetadata"),
        ([FILM], VideoMetadata(), "pass a list of VideoMetadata"),
        ([FILM], [VideoMetadata(0, [4])], "the video has 4 frames"),
        ([FILM], [VideoMetadata(0, [-1])], "from 0"),
        ([FILM], [VideoMetadata(0, [0] * 5)], "choose at most as many"),
    ],
)
def test_what_is_no_video_is_rejected(given: Any, metadata: Any, message: str) -> None:
    with pytest.raises(PromptError, match=message):
        read_videos(given, metadata)
