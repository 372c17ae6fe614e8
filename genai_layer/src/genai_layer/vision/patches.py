"""Patches of an image, and their rotary embedding.

Source: docs/reference/genai.md#images.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from genai_layer.vision.image import Image
from genai_layer.vision.resize import Floats, fitted_size, resize

_THETA = 10000.0


@dataclass(frozen=True, slots=True)
class Grid:
    """Size of an image in patches."""

    height: int
    width: int

    @property
    def patches(self) -> int:
        """Number of patches."""
        return self.height * self.width


@dataclass(frozen=True, slots=True)
class Patcher:
    """Preparation of images, from preprocessor_config.json."""

    patch_size: int
    """Width and height of a patch in pixels."""
    merge_size: int
    """Width and height, in patches, of what becomes one token."""
    temporal_patch_size: int
    """Number of frames in a patch; an image is repeated."""
    min_pixels: int
    max_pixels: int
    """Limits of an image's area after resizing."""
    image_mean: tuple[float, ...]
    image_std: tuple[float, ...]
    """Mean and deviation of channels whose values are from 0 to 1."""

    def prepare(self, image: Image) -> tuple[Floats, Grid]:
        """Resize and normalise an image, and cut it into patches.

        Returns:
            Patches f32 [patches, channels · frames · patch_size²], token by token; and the grid.

        Raises:
            PromptError: the image is too elongated.
        """
        unit = self.patch_size * self.merge_size
        limits = self.min_pixels, self.max_pixels
        height, width = fitted_size(image.shape[0], image.shape[1], unit, *limits)
        pixels = np.clip(resize(image, height, width), 0, 255)
        mean, deviation = (
            np.array(each, np.float32) * 255 for each in (self.image_mean, self.image_std)
        )
        normal = np.asarray((pixels - mean) * (1 / deviation), np.float32)
        grid = Grid(height // self.patch_size, width // self.patch_size)
        return self._cut(normal, grid), grid

    def tokens(self, grid: Grid) -> int:
        """Return the number of tokens of an image."""
        return grid.patches // self.merge_size**2

    def token_grid(self, grid: Grid) -> Grid:
        """Return the size of an image in tokens."""
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
        ordered = self._token_by_token(places.transpose(1, 2, 0), grid).reshape(-1, 2, 1)
        return (ordered * frequencies).reshape(-1, width).astype(np.float32)

    def _cut(self, pixels: Floats, grid: Grid) -> Floats:
        """Cut pixels [H, W, C] into patches, which repeat for each frame."""
        size, channels = self.patch_size, pixels.shape[2]
        apart = pixels.reshape(grid.height, size, grid.width, size, channels)
        patches = self._token_by_token(apart.transpose(0, 2, 4, 1, 3), grid)
        one_frame = patches.reshape(grid.patches, channels, 1, size * size)
        return np.repeat(one_frame, self.temporal_patch_size, axis=2).reshape(grid.patches, -1)

    def _token_by_token(self, values: Any, grid: Grid) -> Any:
        """Reorder values [rows, columns, …] to [patches, …]: patches of a token are adjacent."""
        merge, rest = self.merge_size, values.shape[2:]
        tokens = self.token_grid(grid)
        apart = values.reshape(tokens.height, merge, tokens.width, merge, *rest)
        return apart.swapaxes(1, 2).reshape(grid.patches, *rest)
