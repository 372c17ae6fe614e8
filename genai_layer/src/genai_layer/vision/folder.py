"""Configuration files of an exported Qwen2-VL's folder.

Source: docs/reference/genai.md#vision-language-models.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from genai_layer.errors import ModelError
from genai_layer.files import is_folder
from genai_layer.json_file import read_object
from genai_layer.vision.patches import Patcher
from genai_layer.vision.settings import Settings, image_settings, read_patcher

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
