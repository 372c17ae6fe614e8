"""Configuration files of an exported Qwen2-VL's folder.

Source: docs/reference/genai.md#vision-language-models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from genai_layer.errors import ModelError
from genai_layer.files import is_folder
from genai_layer.json_file import read_object
from genai_layer.vision.patches import Patcher

_FAMILY = "qwen2_vl"
_CHANNELS = 3


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
        if not is_folder(folder):
            raise ModelError(f"{folder}: no such folder")
        config = read_object(folder / "config.json")
        family = config.get("model_type")
        if family != _FAMILY:
            raise ModelError(
                f"{folder / 'config.json'}: model_type = {family!r}: not supported; export a model "
                f"of the family {_FAMILY}"
            )
        return VisionFolder(
            patcher=_read_patcher(folder),
            rotary_width=_read_rotary_width(folder, config),
            time_step=_read_time_step(folder, config),
        )


def _read_rotary_width(folder: Path, config: Mapping[str, Any]) -> int:
    path = folder / "config.json"
    vision = _object(config, "vision_config")
    width, heads = (_count(path, vision, name) for name in ("embed_dim", "num_heads"))
    if width % (4 * heads):  # half of a head's width is rotated by the row, half by the column
        raise ModelError(
            f"{path}: embed_dim = {width}: must be a multiple of 4 · num_heads = {4 * heads}"
        )
    return width // heads // 2


def _read_time_step(folder: Path, config: Mapping[str, Any]) -> int:
    vision = _object(config, "vision_config")
    return _count(folder / "config.json", vision, "tokens_per_second", 2)


def _read_patcher(folder: Path) -> Patcher:
    path, found = _settings(folder)
    if found.get("min_pixels") is None and found.get("max_pixels") is None:
        size = _object(found, "size")
        found |= {"min_pixels": size.get("shortest_edge"), "max_pixels": size.get("longest_edge")}
    deviations = _channels(path, found, "image_std", 1.0)
    if min(deviations) <= 0:
        raise ModelError(f"{path}: image_std = {[*deviations]}: must be greater than 0")
    return Patcher(
        patch_size=_count(path, found, "patch_size", 14),
        merge_size=_count(path, found, "merge_size", 2),
        temporal_patch_size=_count(path, found, "temporal_patch_size", 2),
        min_pixels=_count(path, found, "min_pixels", 3136),
        max_pixels=_count(path, found, "max_pixels", 12845056),
        image_mean=_channels(path, found, "image_mean", 0.0),
        image_std=deviations,
    )


def _settings(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the settings of images, and their file."""
    combined = folder / "processor_config.json"
    found = read_object(combined)
    if "image_processor" in found and "video_processor" in found:
        return combined, _object(found, "image_processor")
    path = folder / "preprocessor_config.json"
    return path, read_object(path)


def _object(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a copy of a nested object; empty if it is missing."""
    value = found.get(name)
    return dict(cast("dict[str, Any]", value)) if isinstance(value, dict) else {}


def _count(path: Path, found: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = default if found.get(name) is None else found[name]
    if type(value) is not int or value < 1:
        raise ModelError(f"{path}: {name} = {value!r}: must be a positive integer")
    return value


def _channels(path: Path, found: Mapping[str, Any], name: str, default: float) -> tuple[float, ...]:
    values = found.get(name, [default] * _CHANNELS)
    try:
        numbers = tuple(map(float, values))
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != _CHANNELS or not all(map(math.isfinite, numbers)):
        raise ModelError(f"{path}: {name} = {values!r}: must be {_CHANNELS} numbers")
    return numbers
