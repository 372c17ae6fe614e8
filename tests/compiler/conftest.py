"""Fixtures shared by tests of the compiler."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest


@pytest.fixture
def turns() -> list[Mapping[str, np.ndarray]]:
    """Two turns of a conversation with llama-8m."""
    draw, past, made = np.random.default_rng(0), 0, []
    for count in (11, 2):
        made.append(
            {
                "input_ids": draw.integers(0, 8192, (1, count)),
                "attention_mask": np.ones((1, past + count), np.int64),
                "position_ids": np.arange(past, past + count)[None],
                "beam_idx": np.zeros(1, np.int32),
            }
        )
        past += count
    return made
