"""Which tokens of a text are padding, as the model is told."""

from __future__ import annotations

import numpy as np

from npuw_layer.backends.protocols import Array

EOS = 0
"""Ends a text, and begins it; what is behind the end is padding."""


def count_real(ids: Array) -> int:
    """Give how many tokens a text has: up to the first EOS behind its first token, with it.

    Args:
        ids: i64 [1, tokens].

    Returns:
        All of them if there is no such token.
    """
    ends = np.flatnonzero(ids[0, 1:] == EOS)
    return int(ends[0]) + 2 if ends.size else ids.shape[1]


def mask_of(real: int, tokens: int) -> Array:
    """Give what is padding: boolean [1, tokens], true behind the text."""
    return (np.arange(tokens) >= real)[None]
