"""Positions of tokens and images."""

from __future__ import annotations

import numpy as np

from genai_layer.vision.embedded_prompt import positions_of
from genai_layer.vision.patches import Grid

PAD = 9


def test_texts_have_one_position_in_all_axes() -> None:
    found = positions_of(np.array([1, 2, 3]), [], [PAD], 2)
    assert found.tolist() == [[0, 1, 2]] * 3


def test_an_image_has_rows_and_columns_and_takes_its_longer_side() -> None:
    ids = np.array([1, 2, *[PAD] * 6, 3, *[PAD] * 2, 4, 5])
    time, rows, columns = positions_of(ids, [Grid(2, 3), Grid(2, 1)], [PAD], 2)
    assert time.tolist() == [0, 1, *[2] * 6, 5, *[6] * 2, 8, 9]
    assert rows.tolist() == [0, 1, 2, 2, 2, 3, 3, 3, 5, 6, 7, 8, 9]
    assert columns.tolist() == [0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 6, 8, 9]


def test_images_may_begin_and_end_a_prompt() -> None:
    found = positions_of(np.array([PAD, 1, PAD]), [Grid(1, 1), Grid(1, 1)], [PAD], 2)
    assert found.tolist() == [[0, 1, 2]] * 3


def test_groups_of_frames_are_apart_in_time() -> None:
    ids = np.array([1, *[PAD] * 6, 2, PAD + 1, 3])
    found = positions_of(ids, [Grid(1, 2, time=3), Grid(1, 1)], [PAD, PAD + 1], 2)
    time, rows, columns = found.tolist()
    assert time == [0, 1, 1, 3, 3, 5, 5, 6, 7, 8]
    assert rows == [0, 1, 1, 1, 1, 1, 1, 6, 7, 8]
    assert columns == [0, 1, 2, 1, 2, 1, 2, 6, 7, 8]
