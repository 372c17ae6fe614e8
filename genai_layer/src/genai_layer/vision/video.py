"""Videos that callers pass, and the choice of their frames.

Source: openvino_genai.VideoMetadata, docs/reference/genai.md#videos.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

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
    videos = arrays_of("videos", given)
    chosen = _indices(metadata) or [[]] * len(videos)
    if len(chosen) != len(videos):
        raise PromptError(
            f"videos_metadata has {len(chosen)} items for {len(videos)} videos; pass one for each"
        )
    return [_frames(video, frames) for video, frames in zip(videos, chosen, strict=True)]


def _indices(metadata: object) -> list[list[int]]:
    """Return the frames to encode of each video; none if there are no metadata."""
    if metadata is None:
        return []
    if not isinstance(metadata, list | tuple):
        raise PromptError(f"videos_metadata = {metadata!r}: pass a list of VideoMetadata")
    found: list[list[int]] = []
    for each in cast("Sequence[object]", metadata):
        if not isinstance(each, VideoMetadata):
            raise PromptError(f"videos_metadata has {each!r}; pass a VideoMetadata for each video")
        try:
            found.append([operator.index(frame) for frame in each.frames_indices])
        except TypeError:
            raise PromptError(
                f"frames_indices = {each.frames_indices!r}: pass a list of integers"
            ) from None
    return found


def _frames(frames: npt.NDArray[Any], chosen: list[int]) -> Video:
    if frames.ndim != 4 or 0 in frames.shape or frames.shape[3] != 3:
        raise PromptError(
            f"a video has shape {list(frames.shape)}; pass [frames, H, W, 3], with frames"
        )
    if frames.dtype != np.uint8:
        raise PromptError(f"a video has type {frames.dtype}; pass uint8 from 0 to 255")
    if len(chosen) > len(frames) or any(not 0 <= frame < len(frames) for frame in chosen):
        raise PromptError(
            f"frames_indices = {chosen}: the video has {len(frames)} frames; choose at most "
            "as many, from 0"
        )
    return frames[chosen] if chosen else frames
