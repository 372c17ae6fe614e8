"""Patches of an image, and their rotary embedding."""

from __future__ import annotations

import numpy as np

from genai_layer.vision.patches import Grid, Patcher

PATCHER = Patcher(
    patch_size=2,
    merge_size=2,
    temporal_patch_size=2,
    min_pixels=1,
    max_pixels=1000,
    image_mean=(0.5, 0.25, 0.0),
    image_std=(0.5, 0.25, 1.0),
)


def test_patches_of_a_token_are_adjacent_and_repeated_for_each_frame() -> None:
    image = np.arange(4 * 8 * 3, dtype=np.uint8).reshape(4, 8, 3)
    patches, grid = PATCHER.prepare(image[None])
    assert (grid, patches.shape) == (Grid(2, 4), (8, 3 * 2 * 2 * 2))
    assert PATCHER.token_grid(grid) == Grid(1, 2)
    scaled = (image / 255 - PATCHER.image_mean) / PATCHER.image_std
    places = [(0, 0), (0, 2), (2, 0), (2, 2), (0, 4), (0, 6), (2, 4), (2, 6)]
    for patch, (y, x) in zip(patches.reshape(8, 3, 2, 2, 2), places, strict=True):
        expected = scaled[y : y + 2, x : x + 2].transpose(2, 0, 1)
        for frame in range(2):
            np.testing.assert_allclose(patch[:, frame], expected, atol=1e-6)


def test_rotary_embeddings_are_places_times_frequencies() -> None:
    found = PATCHER.rotary_embedding(Grid(2, 4), 4)
    rows, columns = [0, 0, 1, 1, 0, 0, 1, 1], [0, 1, 0, 1, 2, 3, 2, 3]
    expected = [
        [row, row / 100, column, column / 100] for row, column in zip(rows, columns, strict=True)
    ]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_patch_has_two_frames_and_the_last_one_repeats() -> None:
    frames = np.random.RandomState(1).randint(0, 256, (3, 4, 4, 3)).astype(np.uint8)
    first, last = PATCHER.groups(frames)
    assert (len(first), len(last)) == (2, 1)
    alone = [PATCHER.prepare(frame[None])[0].reshape(4, 3, 2, 4) for frame in frames]
    for group, (one, other) in ((first, (0, 1)), (last, (2, 2))):
        found = PATCHER.prepare(group)[0].reshape(4, 3, 2, 4)
        assert np.array_equal(found[:, :, 0], alone[one][:, :, 0])
        assert np.array_equal(found[:, :, 1], alone[other][:, :, 1])
