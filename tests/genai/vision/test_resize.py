"""Sizes of images, and bicubic interpolation; tests/oracle compares it to OpenVINO's."""

from __future__ import annotations

import numpy as np
import pytest

from genai_layer import PromptError
from genai_layer.vision.patches import fitted_size, resize

LIMITS = {"factor": 28, "min_pixels": 56 * 56, "max_pixels": 28 * 28 * 36}


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((60, 90), (56, 84)),
        ((70, 98), (84, 112)),  # halves are rounded up
        ((28, 112), (28, 112)),
        ((10, 10), (56, 56)),
        ((300, 411), (140, 196)),
        ((1, 200), (28, 812)),
    ],
)
def test_sides_are_multiples_within_the_limits(
    size: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert fitted_size(*size, **LIMITS) == expected


@pytest.mark.parametrize(("size", "message"), [((1, 201), "elongated"), ((28, 5000), "no side")])
def test_images_without_a_size_are_rejected(size: tuple[int, int], message: str) -> None:
    with pytest.raises(PromptError, match=message):
        fitted_size(*size, **LIMITS)


def test_the_same_size_keeps_an_image_and_any_size_keeps_a_colour() -> None:
    image = np.random.default_rng(0).integers(0, 256, (7, 9, 3), np.uint8)
    assert np.array_equal(resize(image, 7, 9), image)
    plain = np.full((5, 6, 3), 77, np.uint8)
    np.testing.assert_allclose(resize(plain, 11, 3), 77, rtol=1e-6)


def test_an_edge_overshoots_as_the_cubic_kernel_does() -> None:
    image = np.array([0, 0, 0, 255, 255, 255], np.uint8).reshape(1, 6, 1)
    found = resize(image, 1, 12).reshape(-1) / 255
    expected = [0, 0, 0, -9 / 256, -27 / 256, 58 / 256]  # at a quarter and three quarters
    expected += [1 - value for value in reversed(expected)]
    np.testing.assert_allclose(found[2:10], expected[2:10], atol=1e-6)
