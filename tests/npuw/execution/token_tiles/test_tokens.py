"""Rows that hold tokens, according to the last columns of the model's mask."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.execution.token_tiles.tokens import find_mask, used_rows

IDS = TensorInfo("input_ids", "i64", (1, 8))
MASK = TensorInfo("attention_mask", "i64", (1, 8))
LONGER = TensorInfo("attention_mask", "i64", (1, 24))


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9), st.integers(0, 9))
def test_padding_is_on_either_side_of_the_tokens_after_stored_rows(
    stored: int, left: int, tokens: int, right: int
) -> None:
    sides = [np.ones(stored), np.zeros(left), np.ones(tokens), np.zeros(right)]
    mask = np.concatenate(sides).astype(np.int64)[None]
    assert used_rows(mask, left + tokens + right) == range(left, left + tokens)


def test_masked_rows_between_tokens_are_not_padding() -> None:
    assert used_rows(np.array([[0, 1, 0, 0, 1, 0]]), 6) == range(1, 5)


def test_a_mask_of_zeros_selects_all_rows() -> None:
    assert used_rows(np.zeros((1, 6)), 4) == range(4)


@pytest.mark.parametrize(
    "inputs",
    [
        [IDS, MASK],
        [IDS, LONGER],
        [TensorInfo("inputs_embeds", "f32", (1, 8, 16)), MASK],
        [IDS, MASK, TensorInfo("position_ids", "i64", (3, 1, 8))],
        [IDS, LONGER, TensorInfo("vpux_ie_read_value_0.key", "f16", (1, 8, 2, 4))],
    ],
)
def test_rows_of_new_tokens_have_a_mask(inputs: list[TensorInfo]) -> None:
    found = find_mask(inputs, 8)
    assert found is not None
    assert found.name == "attention_mask"


@pytest.mark.parametrize(
    "inputs",
    [
        [],
        [IDS],
        [MASK],
        [IDS, TensorInfo("attention_mask", "i64", (1, 4))],
        [IDS, TensorInfo("attention_mask", "i64", (8, 8))],
        [IDS, TensorInfo("attention_mask", "f32", (1, 1, 8, 8))],
        [TensorInfo("input_ids", "i64", (8,)), MASK],
        [TensorInfo("input_ids", "i64", (1, 4)), MASK],
        [IDS, MASK, TensorInfo("encoder_hidden_states", "f32", (1, 8, 16))],
    ],
)
def test_rows_that_may_not_be_tokens_have_no_mask(inputs: list[TensorInfo]) -> None:
    assert find_mask(inputs, 8) is None
