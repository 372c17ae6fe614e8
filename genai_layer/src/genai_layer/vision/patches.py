"""Patches of an image or of frames, and their rotary embedding.

Source: docs/reference/genai.md#images, docs/reference/genai.md#videos.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from genai_layer.vision.image import Image
from genai_layer.vision.resize import Floats, fitted_size, resize

Frames = npt.NDArray[np.uint8]
"""Frames u8 [frames, height, width, channels]; an image is one frame."""

_THETA = 10000.0


@dataclass(frozen=True, slots=True)
class Grid:
    """Size of an image or a video in patches, or in tokens."""

    height: int
    width: int
    time: int = 1
    """Number of groups of frames."""

    @property
    def count(self) -> int:
        """Number of patches, or of tokens."""
        return self.time * self.height * self.width


@dataclass(frozen=True, slots=True)
class Patcher:
    """Preparation of images, from preprocessor_config.json."""

    patch_size: int
    """Width and height of a patch in pixels."""
    merge_size: int
    """Width and height, in patches, of what becomes one token."""
    temporal_patch_size: int
    """Number of frames in a patch, a group; an image is repeated."""
    min_pixels: int
    max_pixels: int
    """Limits of an image's area after resizing."""
    image_mean: tuple[float, ...]
    image_std: tuple[float, ...]
    """Mean and deviation of channels whose values are from 0 to 1."""

    def groups(self, frames: Frames) -> list[Frames]:
        """Return the frames of each patch; the last one has fewer if there are no more."""
        step = self.temporal_patch_size
        return [frames[first : first + step] for first in range(0, len(frames), step)]

    def prepare(self, frames: Frames) -> tuple[Floats, Grid]:
        """Resize and normalise a group of frames, and cut it into patches.

        Args:
            frames: u8 [frames, H, W, C]; the last one is repeated if there are fewer than
                ``temporal_patch_size``.

        Returns:
            Patches f32 [patches, channels · frames · patch_size²], token by token; and the grid.

        Raises:
            PromptError: the image is too elongated.
        """
        unit = self.patch_size * self.merge_size
        limits = self.min_pixels, self.max_pixels
        height, width = fitted_size(frames.shape[1], frames.shape[2], unit, *limits)
        grid = Grid(height // self.patch_size, width // self.patch_size)
        cut = [self._cut(self._normal(frame, height, width), grid) for frame in frames]
        cut += cut[-1:] * (self.temporal_patch_size - len(cut))
        return np.stack(cut, axis=2).reshape(grid.count, -1), grid

    def token_grid(self, grid: Grid) -> Grid:
        """Return the size in tokens."""
        return Grid(grid.height // self.merge_size, grid.width // self.merge_size)

    def rotary_embedding(self, grid: Grid, width: int) -> Floats:
        """Return the rotary embedding of the vision encoder.

        Args:
            grid: size of the image.
            width: width of the embedding: half for the row, half for the column.

        Returns:
            Angles f32 [patches, width], token by token.
        """
        half = width // 2
        frequencies = 1 / np.float32(_THETA) ** (np.arange(half, dtype=np.float32) / half)
        places = np.indices((grid.height, grid.width), np.float32)
        ordered = self.token_by_token(places.transpose(1, 2, 0), grid).reshape(-1, 2, 1)
        return (ordered * frequencies).reshape(-1, width).astype(np.float32)

    def _normal(self, frame: Image, height: int, width: int) -> Floats:
        pixels = np.clip(resize(frame, height, width), 0, 255)
        mean, deviation = (
            np.array(each, np.float32) * 255 for each in (self.image_mean, self.image_std)
        )
        return np.asarray((pixels - mean) * (1 / deviation), np.float32)

    def _cut(self, pixels: Floats, grid: Grid) -> Floats:
        """Cut pixels [H, W, C] into patches [patches, C, patch_size²]."""
        size, channels = self.patch_size, pixels.shape[2]
        apart = pixels.reshape(grid.height, size, grid.width, size, channels)
        patches = self.token_by_token(apart.transpose(0, 2, 4, 1, 3), grid)
        return patches.reshape(grid.count, channels, size * size)

    def token_by_token(self, values: Any, grid: Grid) -> Any:
        """Reorder values [rows, columns, …] to [patches, …]: patches of a token are adjacent.

        Args:
            values: values of all patches.
            grid: size of the image.
        """
        merge, rest = self.merge_size, values.shape[2:]
        tokens = self.token_grid(grid)
        apart = values.reshape(tokens.height, merge, tokens.width, merge, *rest)
        return apart.swapaxes(1, 2).reshape(grid.count, *rest)
