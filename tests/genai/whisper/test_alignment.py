"""Times of tokens from scores of attention."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from genai_layer.whisper.words import first_frames, warp


def cheapest(costs: np.ndarray) -> float:
    """Return the cost of the cheapest path by the definition.

    At a tie the next frame wins, whatever it costs, so such examples are left out.
    """
    rows, columns = costs.shape
    total = np.full((rows, columns), np.inf)
    for row in range(rows):
        for column in range(columns):
            before = [
                total[row - up, column - left]
                for up, left in ((1, 1), (1, 0), (0, 1))
                if row >= up and column >= left
            ]
            assume(len({*before}) == len(before))
            total[row, column] = costs[row, column] + min(before, default=0)
    return float(total[-1, -1])


@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 1 << 20))
def test_a_path_is_monotone_complete_and_the_cheapest(tokens: int, frames: int, seed: int) -> None:
    # Sums of these integers are exact in f32.
    integers = np.random.RandomState(seed).randint(-(1 << 18), 1 << 18, (tokens, frames))
    costs = integers.astype(np.float32)
    rows, columns = warp(costs)
    assert (rows[0], columns[0]) == (0, 0)
    assert (rows[-1] + 1, columns[-1] + 1) == costs.shape
    steps = {*zip(np.diff(rows).tolist(), np.diff(columns).tolist(), strict=True)}
    assert steps <= {(0, 1), (1, 0), (1, 1)}
    assert costs[rows, columns].sum() == cheapest(costs)


def test_a_token_begins_where_attention_moves_to_it() -> None:
    frames, tokens = 60, 5
    scores = np.zeros((2, tokens, frames), np.float32)
    # The first token has no time; the last one, the end, has none either.
    for token, begin, end in ((1, 0, 15), (2, 15, 40), (3, 40, 55), (4, 55, 60)):
        scores[:, token, begin:end] = 8
    assert first_frames(scores, 1).tolist() == pytest.approx([0, 15, 40], abs=2)


@pytest.mark.parametrize("frames", [1, 2, 5, 7])
def test_short_audio_has_times(frames: int) -> None:
    scores = np.random.RandomState(1).standard_normal((1, 4, frames)).astype(np.float32)
    begins = first_frames(scores, 1)
    assert len(begins) == 2
    assert begins[0] == 0
    assert begins[-1] < frames
