"""Images that callers pass.

Source: docs/reference/genai.md#images.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from genai_layer.errors import PromptError
from genai_layer.vision.tensors import PixelsLike, arrays_of

Image = npt.NDArray[np.uint8]
"""Pixels u8 [height, width, 3], RGB."""

ImageLike = PixelsLike
"""One image, or several of one size: u8 [H, W, C] or [N, H, W, C], with 1, 3 or 4 channels."""

_GRAY, _RGB, _RGBA = 1, 3, 4


def read_images(given: ImageLike | Sequence[ImageLike] | None) -> list[Image]:
    """Return the images of a call.

    Args:
        given: one tensor, several, or None.

    Raises:
        PromptError: a tensor is not an image.
    """
    return [image for pixels in arrays_of("images", given) for image in _images_of(pixels)]


def _images_of(pixels: npt.NDArray[Any]) -> list[Image]:
    batch = pixels[None] if pixels.ndim == 3 else pixels
    if batch.ndim != 4 or 0 in batch.shape or batch.shape[3] not in (_GRAY, _RGB, _RGBA):
        raise PromptError(
            f"an image has shape {list(pixels.shape)}; pass [H, W, C] or [N, H, W, C], with 1, 3 "
            "or 4 channels"
        )
    if batch.dtype != np.uint8:
        raise PromptError(f"an image has type {batch.dtype}; pass uint8 from 0 to 255")
    if batch.shape[3] == _GRAY:
        batch = np.repeat(batch, _RGB, axis=3)
    return list(batch[..., :_RGB])
