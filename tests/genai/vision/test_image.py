"""Images that callers pass."""

from __future__ import annotations

import numpy as np
import pytest

from genai_layer import PromptError, Tensor
from genai_layer.vision.visuals import read_images


def pixels(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def test_one_image_and_several_are_accepted_as_arrays_and_tensors() -> None:
    one = pixels(4, 5, 3)
    for given in (one, Tensor(one), one[None], [one], [Tensor(one)]):
        (found,) = read_images(given)
        assert np.array_equal(found, one)
    assert read_images(None) == read_images([]) == []
    assert len(read_images(pixels(2, 4, 5, 3))) == 2


def test_grey_is_repeated_and_transparency_dropped() -> None:
    grey, transparent = pixels(4, 5, 1), pixels(4, 5, 4)
    (repeated,), (opaque,) = read_images(grey), read_images(transparent)
    assert np.array_equal(repeated, np.repeat(grey, 3, axis=2))
    assert np.array_equal(opaque, transparent[..., :3])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pixels(4, 5), r"shape \[4, 5\]"),
        (pixels(4, 5, 2), r"shape \[4, 5, 2\]"),
        (pixels(0, 5, 3), r"shape \[0, 5, 3\]"),
        (pixels(4, 5, 3).astype(np.float32), "type float32; pass uint8"),
        ("image.png", "images = 'image.png': pass a tensor"),
        (["image.png"], "images = .*: pass a tensor"),
    ],
)
def test_other_tensors_are_rejected(given: object, message: str) -> None:
    with pytest.raises(PromptError, match=message):
        read_images(given)  # pyright: ignore[reportArgumentType] (users err)
