"""Configuration files of a Qwen2-VL's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from genai_layer import ModelError
from genai_layer.vision.folder import VisionFolder

CONFIG = {"model_type": "qwen2_vl", "vision_config": {"embed_dim": 64, "num_heads": 2}}


def read(folder: Path, **files: Any) -> VisionFolder:
    """Read a folder of these files, and of a config.json unless it is given."""
    for name, content in {"config": CONFIG, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return VisionFolder.read(folder)


def test_missing_settings_are_those_of_qwen2_vl(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert (found.rotary_width, found.time_step) == (16, 2)
    patcher = found.patcher
    assert (patcher.patch_size, patcher.merge_size, patcher.temporal_patch_size) == (14, 2, 2)
    assert (patcher.min_pixels, patcher.max_pixels) == (3136, 12845056)


def test_limits_of_the_area_have_two_names(tmp_path: Path) -> None:
    size = {"shortest_edge": 100, "longest_edge": 2000}
    patcher = read(tmp_path, preprocessor_config={"size": size}).patcher
    assert (patcher.min_pixels, patcher.max_pixels) == (100, 2000)


def test_a_combined_file_has_settings_of_images_and_videos(tmp_path: Path) -> None:
    combined = {"image_processor": {"patch_size": 7}, "video_processor": {}}
    found = read(tmp_path, preprocessor_config={"patch_size": 3}, processor_config=combined)
    assert found.patcher.patch_size == 7


@pytest.mark.parametrize(
    ("vision", "message"),
    [
        (None, "embed_dim = None: must be a positive integer"),
        ({"embed_dim": 64, "num_heads": 100}, "must be a multiple of 4 · num_heads = 400"),
        ({"embed_dim": 64, "num_heads": 2, "tokens_per_second": 0}, "tokens_per_second = 0"),
    ],
)
def test_sizes_that_do_not_fit_are_rejected(tmp_path: Path, vision: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read(tmp_path, config={"model_type": "qwen2_vl", "vision_config": vision})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patch_size": 0}, "patch_size = 0: must be a positive integer"),
        ({"image_mean": ["a"]}, r"image_mean = \['a'\]: must be 3 numbers"),
        ({"image_mean": [0, float("nan"), 0]}, "must be 3 numbers"),
        ({"image_std": [1, 0, 1]}, "must be greater than 0"),
    ],
)
def test_settings_of_images_are_checked(tmp_path: Path, settings: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read(tmp_path, preprocessor_config=settings)
