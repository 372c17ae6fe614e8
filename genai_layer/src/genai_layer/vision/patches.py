"""Patches of an image or of frames: sizes, bicubic interpolation, and their rotary embedding.

Source: docs/reference/genai.md#images, docs/reference/genai.md#videos; OpenVINO's Interpolate-11,
mode cubic, with half-pixel coordinates and without antialiasing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from genai_layer.errors import PromptError
from genai_layer.vision.visuals import Image

Floats = npt.NDArray[np.float32]

_MOST_ELONGATED = 200
_COEFFICIENT = -0.75
_TAPS = np.arange(-1, 3)
"""Pixels that one result is made of, relative to the one before it."""


def fitted_size(
    height: int, width: int, factor: int, min_pixels: int, max_pixels: int
) -> tuple[int, int]:
    """Return the nearest height and width that are multiples of a factor, within limits.

    Args:
        height: height in pixels.
        width: width in pixels.
        factor: unit of both.
        min_pixels: smallest area.
        max_pixels: largest area.

    Raises:
        PromptError: one side is more than 200 times the other, or not a patch fits.
    """
    if max(height, width) // min(height, width) > _MOST_ELONGATED:
        raise PromptError(
            f"an image of {height} x {width} pixels is too elongated; crop it to a ratio of at "
            f"most {_MOST_ELONGATED}"
        )
    high, wide = (math.floor(side / factor + 0.5) * factor for side in (height, width))
    if high * wide > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        high, wide = (math.floor(side / shrink / factor) * factor for side in (height, width))
    elif high * wide < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        high, wide = (math.ceil(side * grow / factor) * factor for side in (height, width))
    if not high * wide:
        raise PromptError(
            f"an image of {height} x {width} pixels has no side of {factor} within {max_pixels} "
            "pixels; crop it"
        )
    return high, wide


def resize(image: npt.NDArray[np.uint8], height: int, width: int) -> Floats:
    """Interpolate an image [H, W, C]; results may exceed its range.

    Returns:
        Pixels f32 [height, width, C].
    """
    return _along(_along(image.astype(np.float32), 0, height), 1, width)


def _along(values: Floats, axis: int, count: int) -> Floats:
    """Interpolate along one axis."""
    places, weights = _taps(values.shape[axis], count)
    shape = [1] * values.ndim
    shape[axis] = count
    total = np.zeros([*values.shape[:axis], count, *values.shape[axis + 1 :]], np.float32)
    for place, weight in zip(places.T, weights.T, strict=True):
        total += np.take(values, place, axis) * weight.reshape(shape)
    return total


def _taps(given: int, count: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the places and weights [count, 4] of the pixels that each result is made of."""
    centres = (np.arange(count) + 0.5) * (given / count) - 0.5
    if count == 1:
        centres = np.zeros(1)
    before = np.floor(centres).astype(np.int64)
    places = np.clip(before[:, None] + _TAPS, 0, given - 1)
    distances = np.abs(centres[:, None] - (before[:, None] + _TAPS))
    return places, _weight(distances).astype(np.float32)


def _weight(distance: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the cubic kernel at distances of at most 2."""
    a, x = _COEFFICIENT, distance
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, far)


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
