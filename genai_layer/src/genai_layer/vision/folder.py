"""Configuration files of an exported Qwen2-VL's folder: numbers, and how visuals are prepared.

Source: docs/reference/genai.md#vision-language-models, docs/reference/genai.md#images,
docs/reference/genai.md#videos-of-qwen3-vl.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from genai_layer.errors import ModelError
from genai_layer.files import is_file, is_folder, read_object, whole
from genai_layer.vision.patches import Patcher

_CHANNELS = 3


@dataclass(frozen=True, slots=True)
class Settings:
    """JSON object and its file."""

    path: Path
    values: Mapping[str, Any]

    def object(self, name: str) -> Settings:
        """Return a nested object; empty if it is missing."""
        value = self.values.get(name)
        return Settings(self.path, cast("dict[str, Any]", value) if isinstance(value, dict) else {})

    def count(self, name: str, default: int | None = None, least: int = 1) -> int:
        """Return an integer.

        Raises:
            ModelError: the value is missing, or no integer of at least ``least``.
        """
        value = default if self.values.get(name) is None else whole(self.values[name])
        if type(value) is not int or value < least:
            wanted = "a positive integer" if least else "an integer of 0 or more"
            raise ModelError(f"{self.path}: {name} = {value!r}: must be {wanted}")
        return value

    def channels(self, name: str, default: float) -> tuple[float, ...]:
        """Return a number for each channel.

        Raises:
            ModelError: the value is another one.
        """
        values = self.values.get(name, [default] * _CHANNELS)
        try:
            numbers = tuple(map(float, values))
        except (TypeError, ValueError):
            numbers = ()
        if len(numbers) != _CHANNELS or not all(map(math.isfinite, numbers)):
            raise ModelError(f"{self.path}: {name} = {values!r}: must be {_CHANNELS} numbers")
        return numbers


def image_settings(folder: Path) -> Settings:
    """Return the settings of images."""
    combined = _combined(folder)
    return combined.object("image_processor") if combined else _preprocessor(folder)


def video_settings(folder: Path) -> Settings:
    """Return the settings of videos; those of images if there are no others."""
    combined = _combined(folder)
    if combined:
        return combined.object("video_processor")
    path = folder / "video_preprocessor_config.json"
    return Settings(path, read_object(path)) if is_file(path) else _preprocessor(folder)


def read_patcher(settings: Settings) -> Patcher:
    """Return the preparation of images or videos.

    Raises:
        ModelError: a value is wrong.
    """
    limits, names = settings, ("min_pixels", "max_pixels")
    if all(settings.values.get(name) is None for name in names):
        limits, names = settings.object("size"), ("shortest_edge", "longest_edge")
    deviations = settings.channels("image_std", 1.0)
    if min(deviations) <= 0:
        raise ModelError(f"{settings.path}: image_std = {[*deviations]}: must be greater than 0")
    return Patcher(
        patch_size=settings.count("patch_size", 14),
        merge_size=settings.count("merge_size", 2),
        temporal_patch_size=settings.count("temporal_patch_size", 2),
        min_pixels=limits.count(names[0], 3136),
        max_pixels=limits.count(names[1], 12845056),
        image_mean=settings.channels("image_mean", 0.0),
        image_std=deviations,
    )


def _combined(folder: Path) -> Settings | None:
    """Return the file that has settings of both images and videos, if there is one."""
    path = folder / "processor_config.json"
    found = read_object(path)
    both = "image_processor" in found and "video_processor" in found
    return Settings(path, found) if both else None


def _preprocessor(folder: Path) -> Settings:
    path = folder / "preprocessor_config.json"
    return Settings(path, read_object(path))


_FAMILY = "qwen2_vl"


@dataclass(frozen=True, slots=True)
class VisionFolder:
    """Sizes and settings from a folder."""

    patcher: Patcher
    rotary_width: int
    """Width of a patch's rotary embedding."""
    time_step: int
    """Difference in position of adjacent groups of a video's frames."""

    @staticmethod
    def read(folder: Path) -> VisionFolder:
        """Read a folder.

        Raises:
            ModelError: a file is missing or broken, or the model is of another family.
        """
        vision = read_config(folder, _FAMILY).object("vision_config")
        return VisionFolder(
            patcher=read_patcher(image_settings(folder)),
            rotary_width=read_rotary_width(vision, "embed_dim"),
            time_step=vision.count("tokens_per_second", 2),
        )


def read_config(folder: Path, family: str) -> Settings:
    """Read config.json of a model of a family.

    Raises:
        ModelError: the folder is missing, the file is broken, or the model is of another family.
    """
    if not is_folder(folder):
        raise ModelError(f"{folder}: no such folder")
    path = folder / "config.json"
    config = read_object(path)
    found = config.get("model_type")
    if found != family:
        raise ModelError(
            f"{path}: model_type = {found!r}: not supported; export a model of the family {family}"
        )
    return Settings(path, config)


def read_rotary_width(vision: Settings, name: str) -> int:
    """Return the width of a patch's rotary embedding.

    Args:
        vision: the settings of the vision encoder.
        name: that of its width.

    Raises:
        ModelError: the width cannot be split.
    """
    width, heads = vision.count(name), vision.count("num_heads")
    if width % (4 * heads):  # half of a head's width is rotated by the row, half by the column
        raise ModelError(
            f"{vision.path}: {name} = {width}: must be a multiple of 4 · num_heads = {4 * heads}"
        )
    return width // heads // 2
