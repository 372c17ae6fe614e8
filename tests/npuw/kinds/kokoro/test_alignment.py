"""Alignment on the host: tokens are repeated like the model's own alignment, padding is found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.errors import ModelError
from npuw_layer.kinds.kokoro.alignment import (
    MAX_FRAMES,
    count_real,
    gather_frames,
    mask_of,
    tokens_of_frames,
)

durations = st.lists(st.integers(-2, 6), min_size=1, max_size=20).filter(
    lambda every: max(every) > 0
)


@given(durations, st.integers(0, 9))
def test_gathered_frames_equal_the_matmul_with_the_alignment(lasting: list[int], more: int) -> None:
    tokens = tokens_of_frames(np.array(lasting))
    alignment = np.zeros((len(lasting), tokens.size + more), np.float32)
    alignment[tokens, np.arange(tokens.size)] = 1
    assert alignment.sum(1).tolist() == [max(each, 0) for each in lasting]
    assert (np.diff(tokens) >= 0).all()
    encoding = np.random.RandomState(0).standard_normal((1, 5, len(lasting))).astype(np.float32)
    found = gather_frames(encoding, tokens, tokens.size + more)
    np.testing.assert_array_equal(found, encoding @ alignment)


@pytest.mark.parametrize("lasting", [[0, 0], [-3, 0]])
def test_a_text_without_frames_has_no_audio(lasting: list[int]) -> None:
    with pytest.raises(ModelError, match="the sum of durations is 0"):
        tokens_of_frames(np.array(lasting))


@pytest.mark.parametrize("lasting", [[MAX_FRAMES, 1], [1 << 62, 1 << 62, 1 << 62], [1 << 60]])
def test_implausible_durations_allocate_no_memory(lasting: list[int]) -> None:
    with pytest.raises(ModelError, match="check that the model computes valid durations"):
        tokens_of_frames(np.array(lasting))


@given(st.lists(st.integers(1, 9), max_size=9), st.integers(0, 9), st.integers(0, 9))
def test_a_text_ends_with_the_first_0_after_its_first_token(
    words: list[int], first: int, padding: int
) -> None:
    ids = np.array([[first, *words, 0, *[7] * padding]])
    real = count_real(ids)
    assert real == len(words) + 2
    mask = mask_of(real, ids.shape[1])
    assert mask.tolist() == [[False] * real + [True] * padding]


def test_a_text_without_an_end_has_no_padding() -> None:
    assert count_real(np.array([[0, 1, 2]])) == 3
    assert count_real(np.array([[5]])) == 1
