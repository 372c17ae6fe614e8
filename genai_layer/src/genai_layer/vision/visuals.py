"""Images and videos that callers pass, one or several, and the choice of a video's frames.

Source: openvino_genai.VLMPipeline.generate, VideoMetadata,
docs/reference/genai.md#vision-language-models, docs/reference/genai.md#images,
docs/reference/genai.md#videos.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from genai_layer.checked import Checked, read_as
from genai_layer.errors import PromptError
from genai_layer.tensor import HasData, array_of

PixelsLike = HasData | npt.NDArray[Any]


def arrays_of(name: str, given: PixelsLike | Sequence[PixelsLike] | None) -> list[npt.NDArray[Any]]:
    """Return the arrays of an argument.

    Args:
        name: name of the argument, for messages.
        given: one tensor, several, or None.

    Raises:
        ArgumentError: the argument is something else.
    """
    if given is None:
        return []
    found = read_as(name, given, PixelsLike | Sequence[PixelsLike])
    several = cast("list[PixelsLike]", found if isinstance(found, list) else [found])
    return [*map(array_of, several)]


Image = npt.NDArray[np.uint8]
"""Pixels u8 [height, width, 3], RGB."""

ImageLike = PixelsLike
"""One image, or several of one size: u8 [H, W, C] or [N, H, W, C], with 1, 3 or 4 channels."""

_GRAY, _RGB, _RGBA = 1, 3, 4


def read_images(given: ImageLike | Sequence[ImageLike] | None) -> list[Image]:
    """Return the images of a call.

    Args:
        given: one tensor, several, or None.

    Raises:
        PromptError: a tensor is not an image.
    """
    return [image for pixels in arrays_of("images", given) for image in _images_of(pixels)]


def _images_of(pixels: npt.NDArray[Any]) -> list[Image]:
    batch = pixels[None] if pixels.ndim == 3 else pixels
    if batch.ndim != 4 or 0 in batch.shape or batch.shape[3] not in (_GRAY, _RGB, _RGBA):
        raise PromptError(
            f"an image has shape {list(pixels.shape)}; pass [H, W, C] or [N, H, W, C], with 1, 3 "
            "or 4 channels"
        )
    if batch.dtype != np.uint8:
        raise PromptError(f"an image has type {batch.dtype}; pass uint8 from 0 to 255")
    if batch.shape[3] == _GRAY:
        batch = np.repeat(batch, _RGB, axis=3)
    return list(batch[..., :_RGB])


Video = npt.NDArray[np.uint8]
"""Frames u8 [frames, height, width, 3], RGB."""

VideoLike = PixelsLike
"""One video, u8 [frames, height, width, 3]."""


@dataclass(slots=True)
class VideoMetadata(Checked):
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
        ArgumentError: there are other objects.
        PromptError: there are not as many.
    """
    found: list[VideoMetadata] = (
        read_as("videos_metadata", metadata, Sequence[VideoMetadata] | None) or []
    )
    if len(found) not in (0, count):
        raise PromptError(
            f"videos_metadata has {len(found)} items for {count} videos; pass one for each"
        )
    return found or [VideoMetadata() for _ in range(count)]


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
