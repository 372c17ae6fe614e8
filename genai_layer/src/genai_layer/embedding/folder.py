"""Configuration files of an exported Qwen3-VL's folder.

Source: docs/reference/genai.md#embeddings-of-images.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from genai_layer.embedding.frames import Sampling, read_sampling
from genai_layer.errors import ModelError
from genai_layer.vision.folder import (
    image_settings,
    read_config,
    read_patcher,
    read_rotary_width,
    video_settings,
)
from genai_layer.vision.patches import Patcher
from genai_layer.vision.prompt_tags import IMAGE, VIDEO, Kind

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
