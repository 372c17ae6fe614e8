"""Sizes of images in patches, and bicubic interpolation.

Source: docs/reference/genai.md#images; OpenVINO's Interpolate-11, mode cubic, with half-pixel
coordinates and without antialiasing.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from genai_layer.errors import PromptError

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
