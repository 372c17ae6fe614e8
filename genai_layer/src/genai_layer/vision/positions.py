"""Rotary positions of tokens and images (M-RoPE).

Source: docs/reference/genai.md#positions-of-images.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from genai_layer.vision.patches import Grid

Positions = npt.NDArray[np.int64]
"""Time, row and column of each token, i64 [3, n]."""


def positions_of(ids: npt.NDArray[np.int64], grids: Iterable[Grid], pad: int) -> Positions:
    """Return the positions of a prompt's tokens.

    Args:
        ids: the prompt, i64 [n].
        grids: sizes of the images in tokens, in the order of their places in the prompt.
        pad: the id at the places of images.
    """
    parts: list[Positions] = []
    done = following = 0
    for grid in grids:
        start = done + int(np.argmax(ids[done:] == pad))
        parts.append(_text(following, start - done))
        following += start - done
        parts.append(following + _image(grid))
        following += max(grid.height, grid.width)
        done = start + grid.patches
    parts.append(_text(following, len(ids) - done))
    return np.concatenate(parts, axis=1)


def _text(first: int, count: int) -> Positions:
    return np.tile(np.arange(first, first + count), (3, 1))


def _image(grid: Grid) -> Positions:
    rows, columns = np.indices((grid.height, grid.width)).reshape(2, -1)
    return np.stack([np.zeros_like(rows), rows, columns])
