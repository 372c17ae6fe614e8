"""Videos that callers pass, and the choice of their frames.

Source: openvino_genai.VideoMetadata, docs/reference/genai.md#videos.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from genai_layer.errors import PromptError
from genai_layer.tensor import HasData, array_of, is_tensor

Video = npt.NDArray[np.uint8]
"""Frames u8 [frames, height, width, 3], RGB."""

VideoLike = HasData | npt.NDArray[Any]
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
    videos: Sequence[VideoLike]
    if given is None:
        videos = []
    elif isinstance(given, np.ndarray) or is_tensor(given):
        videos = [given]
    elif isinstance(given, list | tuple):
        videos = cast("Sequence[VideoLike]", given)
    else:
        raise PromptError(f"videos = {given!r}: pass a tensor or a list of tensors")
    if not metadata:
        return [_frames(video, []) for video in videos]
    if len(metadata) != len(videos):
        raise PromptError(f"videos_metadata has {len(metadata)} items for {len(videos)} videos")
    chosen = [_indices(each) for each in metadata]
    return [_frames(video, frames) for video, frames in zip(videos, chosen, strict=True)]


def _indices(metadata: object) -> list[int]:
    if isinstance(metadata, VideoMetadata):
        return metadata.frames_indices
    raise PromptError(f"videos_metadata has {metadata!r}; pass a VideoMetadata for each video")


def _frames(given: VideoLike, chosen: Sequence[int]) -> Video:
    frames = array_of(given)
    if frames.ndim != 4 or 0 in frames.shape or frames.shape[3] != 3:
        raise PromptError(
            f"a video has shape {list(frames.shape)}; pass [frames, H, W, 3], with frames"
        )
    if frames.dtype != np.uint8:
        raise PromptError(f"a video has type {frames.dtype}; pass uint8 from 0 to 255")
    if len(chosen) > len(frames) or any(not 0 <= frame < len(frames) for frame in chosen):
        raise PromptError(
            f"frames_indices = {list(chosen)}: the video has {len(frames)} frames; choose at most "
            "as many, from 0"
        )
    return frames[list(chosen)] if chosen else frames
