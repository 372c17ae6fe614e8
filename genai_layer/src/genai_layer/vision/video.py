"""Videos that callers pass, and the choice of their frames.

Source: openvino_genai.VideoMetadata, docs/reference/genai.md#videos.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt

from genai_layer.errors import PromptError
from genai_layer.vision.tensors import PixelsLike, arrays_of

Video = npt.NDArray[np.uint8]
"""Frames u8 [frames, height, width, 3], RGB."""

VideoLike = PixelsLike
"""One video, u8 [frames, height, width, 3]."""


@dataclass(slots=True)
class VideoMetadata:
    """Facts about a video."""

    fps: float = 0.0
    """Frames per second; 0 if unknown. Without effect on Qwen2-VL."""
    frames_indices: list[int] = field(default_factory=list[int])
    """Frames to encode, in this order; empty for all."""


def read_videos(
    given: VideoLike | Sequence[VideoLike] | None, metadata: Sequence[VideoMetadata] | None
) -> list[Video]:
    """Return the frames to encode of the videos of a call.

    Args:
        given: one tensor, several, or None.
        metadata: of all videos, or empty or None.

    Raises:
        PromptError: a tensor is not a video, or the metadata do not match the videos.
    """
    videos = all_frames(given)
    facts = read_metadata(metadata, len(videos))
    return [
        chosen_frames(video, each.frames_indices) for video, each in zip(videos, facts, strict=True)
    ]


def all_frames(given: VideoLike | Sequence[VideoLike] | None) -> list[Video]:
    """Return all frames of the videos of a call.

    Raises:
        PromptError: a tensor is not a video.
    """
    videos = arrays_of("videos", given)
    for frames in videos:
        if frames.ndim != 4 or 0 in frames.shape or frames.shape[3] != 3:
            raise PromptError(
                f"a video has shape {list(frames.shape)}; pass [frames, H, W, 3], with frames"
            )
        if frames.dtype != np.uint8:
            raise PromptError(f"a video has type {frames.dtype}; pass uint8 from 0 to 255")
    return videos


def read_metadata(metadata: object, count: int) -> list[VideoMetadata]:
    """Return checked facts about each video; without frames if there are no metadata.

    Args:
        metadata: a list of VideoMetadata, or None.
        count: number of the videos.

    Raises:
        PromptError: there are other objects, or not as many.
    """
    if metadata is None:
        return [VideoMetadata() for _ in range(count)]
    if not isinstance(metadata, list | tuple):
        raise PromptError(f"videos_metadata = {metadata!r}: pass a list of VideoMetadata")
    found = [_checked(each) for each in cast("Sequence[object]", metadata)]
    if len(found) not in (0, count):
        raise PromptError(
            f"videos_metadata has {len(found)} items for {count} videos; pass one for each"
        )
    return found or read_metadata(None, count)


def chosen_frames(video: Video, chosen: list[int]) -> Video:
    """Return frames of a video in their order; all if none is chosen.

    Raises:
        PromptError: the video has no such frame, or fewer frames.
    """
    if len(chosen) > len(video) or any(not 0 <= frame < len(video) for frame in chosen):
        raise PromptError(
            f"frames_indices = {chosen}: the video has {len(video)} frames; choose at most "
            "as many, from 0"
        )
    return video[chosen] if chosen else video


def _checked(metadata: object) -> VideoMetadata:
    """Return facts about a video with integers and a float."""
    if not isinstance(metadata, VideoMetadata):
        raise PromptError(f"videos_metadata has {metadata!r}; pass a VideoMetadata for each video")
    frames = metadata.frames_indices
    try:
        chosen = [operator.index(frame) for frame in frames]
    except TypeError:
        raise PromptError(f"frames_indices = {frames!r}: pass a list of integers") from None
    try:
        return VideoMetadata(float(metadata.fps), chosen)
    except (TypeError, ValueError):
        raise PromptError(f"fps = {metadata.fps!r}: pass a number") from None
