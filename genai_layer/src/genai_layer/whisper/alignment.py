"""Times of tokens, from the scores of the decoder's cross-attention.

Each token is assigned to the frames of audio that the alignment heads attend to when the decoder
reads the token. Dynamic time warping makes the assignment monotone.

Source: docs/reference/genai.md#timestamps-of-words.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]

_MEDIAN = 7
"""Frames of the median filter."""
_LEAST_DEVIATION = np.float32(1e-6)
_DIAGONAL, _NEXT_TOKEN, _NEXT_FRAME = 0, 1, 2


def first_frames(scores: Floats, skipped: int) -> Indices:
    """Return the frame at which each token begins, [tokens - skipped - 1].

    Args:
        scores: scores before the softmax, f32 [heads, tokens, frames].
        skipped: number of first tokens without a time; the last token has none either.
    """
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    deviations = np.maximum(weights.std(1, keepdims=True), _LEAST_DEVIATION)
    weights = (weights - weights.mean(1, keepdims=True)) / deviations
    costs = -_smoothed(weights).mean(0)[skipped:-1]
    tokens, frames = warp(costs)
    begins = np.flatnonzero(np.diff(tokens, prepend=-1))
    return frames[begins]


def _smoothed(values: Floats) -> Floats:
    """Filter the last axis by the median of neighbours; at its ends, of those that exist."""
    reach, frames = _MEDIAN // 2, values.shape[-1]
    found = np.empty_like(values)
    if frames >= _MEDIAN:
        windows = np.lib.stride_tricks.sliding_window_view(values, _MEDIAN, -1)
        found[..., reach : frames - reach] = np.median(windows, -1)
    for frame in {*range(min(reach, frames)), *range(max(frames - reach, 0), frames)}:
        found[..., frame] = np.median(values[..., max(frame - reach, 0) : frame + reach + 1], -1)
    return found


def warp(costs: Floats) -> tuple[Indices, Indices]:
    """Return the cheapest monotone path through costs, as rows and columns from first to last.

    As in openai/whisper, the next frame wins every tie.

    Args:
        costs: f32 [rows, columns], neither 0.
    """
    rows, columns = (int(length) for length in costs.shape)
    total = np.full((rows + 1, columns + 1), np.inf, np.float32)
    total[0, 0] = 0
    steps = np.full(total.shape, _NEXT_FRAME, np.int8)
    steps[:, 0] = _NEXT_TOKEN
    # Entries of an antidiagonal depend on those of the two before it alone.
    for both in range(2, rows + columns + 1):
        row = np.arange(max(1, both - columns), min(rows, both - 1) + 1)
        column = both - row
        diagonal = total[row - 1, column - 1]
        above, left = total[row - 1, column], total[row, column - 1]
        by_diagonal = (diagonal < above) & (diagonal < left)
        by_above = (above < diagonal) & (above < left)
        cheapest = np.where(by_diagonal, diagonal, np.where(by_above, above, left))
        steps[row, column] = np.where(
            by_diagonal, _DIAGONAL, np.where(by_above, _NEXT_TOKEN, _NEXT_FRAME)
        )
        total[row, column] = costs[row - 1, column - 1] + cheapest
    return _traced(steps)


def _traced(steps: npt.NDArray[np.int8]) -> tuple[Indices, Indices]:
    """Follow the steps from the last entry to the first."""
    row, column = (length - 1 for length in steps.shape)
    path: list[tuple[int, int]] = []
    while row or column:
        path.append((max(row - 1, 0), max(column - 1, 0)))
        step = int(steps[row, column])
        row -= int(step != _NEXT_FRAME)
        column -= int(step != _NEXT_TOKEN)
    rows, columns = zip(*reversed(path), strict=True)
    return np.array(rows), np.array(columns)
