"""Rotary positions of tokens, images and videos (M-RoPE).

Source: docs/reference/genai.md#positions-of-images, docs/reference/genai.md#videos.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from genai_layer.vision.patches import Grid

Positions = npt.NDArray[np.int64]
"""Time, row and column of each token, i64 [3, n]."""


def positions_of(
    ids: npt.NDArray[np.int64], grids: Iterable[Grid], pads: Sequence[int], time_step: int
) -> Positions:
    """Return the positions of a prompt's tokens.

    Args:
        ids: the prompt, i64 [n].
        grids: sizes of the images and videos in tokens, in the order of their places in the prompt.
        pads: the ids at the places of images and videos.
        time_step: difference in time of adjacent groups of frames.
    """
    parts: list[Positions] = []
    places = np.isin(ids, pads)
    done = following = 0
    for grid in grids:
        start = done + int(np.argmax(places[done:]))
        parts.append(_text(following, start - done))
        following += start - done
        visual = following + _visual(grid, time_step)
        parts.append(visual)
        following = int(visual.max()) + 1
        done = start + grid.count
    parts.append(_text(following, len(ids) - done))
    return np.concatenate(parts, axis=1)


def _text(first: int, count: int) -> Positions:
    return np.tile(np.arange(first, first + count), (3, 1))


def _visual(grid: Grid, time_step: int) -> Positions:
    sizes = grid.time, grid.height, grid.width
    return np.indices(sizes).reshape(3, -1) * [[time_step], [1], [1]]
