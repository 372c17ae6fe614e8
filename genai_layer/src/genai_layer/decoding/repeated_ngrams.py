"""Tokens that would repeat a run of tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def repeating_tokens(ids: Sequence[int], size: int) -> npt.NDArray[np.int64]:
    """Return the tokens that would complete a run of ``size`` tokens that the ids already have.

    Args:
        ids: prompt and text.
        size: length of a run, at least 1.
    """
    text = np.array(ids, np.int64)
    if len(text) < max(size, 2):
        return np.empty(0, np.int64)
    runs = np.lib.stride_tricks.sliding_window_view(text, size)
    same = (runs[:, :-1] == text[len(text) - size + 1 :]).all(axis=1)
    return runs[same, -1]
