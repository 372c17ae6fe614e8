"""Configuration files of an exported Qwen3-VL's folder, and the choice of a video's frames.

The prompt of a video names the times of its groups of frames.

Source: docs/reference/genai.md#embeddings-of-images, docs/reference/genai.md#videos-of-qwen3-vl.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from genai_layer.errors import ModelError, PromptError
from genai_layer.vision.folder import (
    Settings,
    image_settings,
    read_config,
    read_patcher,
    read_rotary_width,
    video_settings,
)
from genai_layer.vision.patches import Patcher
from genai_layer.vision.prompt_tags import IMAGE, VIDEO, Kind
from genai_layer.vision.visuals import VideoMetadata

_FPS = 24.0
"""Frames per second of a video that does not tell them."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Choice of frames, from the settings of videos."""

    active: bool
    """False to take all frames."""
    fps: float
    """Frames per second to take; 0 if ``count`` decides."""
    count: int
    """Number of frames to take; 0 if ``fps`` decides, or for all."""
    least: int
    most: int
    """Limits of the number of frames, unless ``count`` decides."""


def read_sampling(settings: Settings) -> Sampling:
    """Read the settings of videos.

    Raises:
        ModelError: a value is wrong, or both fps and num_frames are set.
    """
    fps, active = settings.values.get("fps") or 0, settings.values.get("do_sample_frames") or False
    known = isinstance(fps, int | float) and 0 <= fps < math.inf and isinstance(active, bool)
    if not known:
        raise ModelError(f"{settings.path}: fps = {fps!r}, do_sample_frames = {active!r}")
    count = settings.count("num_frames", 0, least=0)
    if fps and count:
        raise ModelError(f"{settings.path}: fps and num_frames exclude each other; remove one")
    limits = [settings.count(name, 0, least=0) for name in ("min_frames", "max_frames")]
    return Sampling(active, float(fps), count, *limits)


def frames_to_take(total: int, metadata: VideoMetadata, sampling: Sampling) -> list[int]:
    """Return the indices of the frames to encode.

    Args:
        total: number of frames.
        metadata: the video's; its frames_indices precede the settings.
        sampling: the settings.

    Raises:
        PromptError: the settings ask for a single frame, or for more than there are; or the frames
            per second are negative or infinite.
    """
    if metadata.frames_indices:
        return metadata.frames_indices
    if not sampling.active:
        return list(range(total))
    count = sampling.count
    if not count:
        by_fps = min(total / _rate(metadata.fps) * sampling.fps, total)
        count = max(int(by_fps) if sampling.fps else total, sampling.least)
        count = min(count, sampling.most, total)
    if not 1 < count <= total:
        raise PromptError(
            f"the video has {total} frames, but its settings choose {count} of them; pass more "
            "frames, or frames_indices in videos_metadata"
        )
    step = (total - 1) / (count - 1)
    return [int(np.floor(frame * step + 0.5)) for frame in range(count)]


def seconds_of(frames: Sequence[int], fps: float, group: int) -> list[float]:
    """Return the time of each group: the mean of its first and last frame's.

    Args:
        frames: indices of the frames.
        fps: frames per second of the video; 0 if unknown.
        group: number of frames of a group; the last frame is repeated in the last group.

    Raises:
        PromptError: the frames per second are negative or infinite.
    """
    padded = [*frames, *[frames[-1]] * (-len(frames) % group)]
    ends = zip(padded[::group], padded[group - 1 :: group], strict=True)
    rate = np.float32(_rate(fps))
    return [float(np.float32(first + last) / np.float32(2) / rate) for first, last in ends]


def _rate(fps: float) -> float:
    """Return a video's frames per second, or the default for 0."""
    if not 0 <= fps < math.inf:
        raise PromptError(f"fps = {fps}: must be a finite number, and not negative")
    return fps or _FPS


_FAMILY = "qwen3_vl"


@dataclass(frozen=True, slots=True)
class Folder:
    """Sizes and settings from a folder."""

    patchers: Mapping[Kind, Patcher]
    """Preparation of images and of videos."""
    sampling: Sampling
    """Default choice of a video's frames."""
    rotary_width: int
    """Width of a patch's rotary embedding."""
    table_side: int
    """Rows and columns of the table of position embeddings."""
    levels: int
    """Number of layers of the language model that add features of visuals."""

    @staticmethod
    def read(folder: Path) -> Folder:
        """Read a folder.

        Raises:
            ModelError: a file is missing or broken, or the model is of another family.
        """
        config = read_config(folder, _FAMILY)
        vision = config.object("vision_config")
        levels = vision.values.get("deepstack_visual_indexes")
        if not isinstance(levels, list) or not levels:
            raise ModelError(f"{config.path}: vision_config has no deepstack_visual_indexes")
        positions = vision.count("num_position_embeddings")
        side = math.isqrt(positions)
        if side * side != positions:
            raise ModelError(
                f"{config.path}: num_position_embeddings = {positions}: must be a square number"
            )
        videos = video_settings(folder)
        image, video = read_patcher(image_settings(folder)), read_patcher(videos)
        # As in openvino_genai, whose graph of the vision encoder has the numbers of images.
        video = replace(video, image_mean=image.image_mean, image_std=image.image_std)
        return Folder(
            patchers={IMAGE: image, VIDEO: video},
            sampling=read_sampling(videos),
            rotary_width=read_rotary_width(vision, "hidden_size"),
            table_side=side,
            levels=len(levels),  # pyright: ignore[reportUnknownArgumentType] (any list)
        )
