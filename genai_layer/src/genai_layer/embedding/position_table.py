"""Position embeddings of patches, interpolated from a table of fixed size.

Source: docs/reference/genai.md#embeddings-of-images.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from genai_layer.vision.patches import Grid
from genai_layer.vision.resize import Floats
from genai_layer.vision.shaped_model import ShapedModel

_ROWS = 4
"""Rows of the model's input."""


class PositionTable:
    """Table of position embeddings.

    Args:
        rows: f32 [side, side, width].
    """

    def __init__(self, rows: Floats) -> None:
        self._rows = rows

    @staticmethod
    def read(model: ShapedModel, side: int) -> PositionTable:
        """Read the table from its model, which looks up indices i64 [4, n].

        Raises:
            RuntimeFailure: the runtime failed.
        """
        count = side * side
        places = np.arange(-(-count // _ROWS) * _ROWS, dtype=np.int64).clip(max=count - 1)
        found = model.run({"input": places.reshape(_ROWS, -1)}, "last_hidden_state")
        rows = found.reshape(len(places), -1)[:count]
        return PositionTable(np.asarray(rows, np.float32).reshape(side, side, -1))

    def at(self, grid: Grid) -> Floats:
        """Return the embeddings of an image's patches, f32 [rows, columns, width].

        The corners of the table and of the image coincide; between them, the interpolation is
        bilinear.
        """
        side = len(self._rows)
        above, below, down = _between(grid.height, side)
        left, right, across = _between(grid.width, side)
        down, across = down[:, None, None], across[None, :, None]
        one = np.float32(1)
        corners = (
            (above, left, (one - down) * (one - across)),
            (above, right, (one - down) * across),
            (below, left, down * (one - across)),
            (below, right, down * across),
        )
        total = np.zeros((grid.height, grid.width, self._rows.shape[2]), np.float32)
        for rows, columns, weights in corners:
            total += self._rows[rows[:, None], columns] * weights
        return total


def _between(count: int, side: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
    """Return the table's places before and after each patch, and the distance from the first."""
    scale = np.float32(side - 1) / np.float32(count - 1) if count > 1 else np.float32(0)
    places = np.arange(count, dtype=np.float32) * scale
    before = places.astype(np.int64).clip(max=side - 1)
    distance = places - before.astype(np.float32)
    return before, (before + 1).clip(max=side - 1), distance
