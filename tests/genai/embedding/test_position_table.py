"""Position embeddings, interpolated from a table."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from genai_layer.embedding.encoder import PositionTable
from genai_layer.vision.patches import Grid

SIDE = 5
ROWS, COLUMNS = np.indices((SIDE, SIDE), np.float32)
TABLE = PositionTable(np.stack([ROWS, COLUMNS, ROWS * COLUMNS], axis=2))


def test_a_grid_of_the_tables_size_has_its_rows() -> None:
    found = TABLE.at(Grid(SIDE, SIDE))
    assert np.array_equal(found, np.stack([ROWS, COLUMNS, ROWS * COLUMNS], axis=2))


@given(st.integers(2, 40), st.integers(2, 40))
def test_corners_coincide_and_places_between_are_bilinear(height: int, width: int) -> None:
    found = TABLE.at(Grid(height, width))
    rows = np.linspace(0, SIDE - 1, height)[:, None] + np.zeros(width)
    columns = np.linspace(0, SIDE - 1, width) + np.zeros((height, 1))
    expected = np.stack([rows, columns, rows * columns], axis=2)
    assert np.allclose(found, expected, atol=1e-4)


def test_a_single_row_is_the_tables_first() -> None:
    assert TABLE.at(Grid(1, 2))[0, :, 1].tolist() == [0.0, SIDE - 1.0]
    assert TABLE.at(Grid(1, 2))[0, :, 0].tolist() == [0.0, 0.0]
