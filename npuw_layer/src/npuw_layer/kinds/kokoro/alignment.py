"""Alignment of tokens and frames: padding, the token of each frame, and its encodings.

The result equals the model's own matmul with an alignment matrix of 0 and 1.
"""

from __future__ import annotations

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import ModelError

MAX_FRAMES = 1 << 18
"""Upper bound of a text's frames: nearly two hours of speech."""

_EOS = 0
"""Id that begins and ends a text; tokens behind the end are padding."""


def count_real(ids: Array) -> int:
    """Return the number of tokens up to the first EOS behind the first token, EOS included.

    Args:
        ids: i64 [1, tokens].

    Returns:
        The number; without such an EOS, the number of all tokens.
    """
    ends = np.flatnonzero(ids[0, 1:] == _EOS)
    return int(ends[0]) + 2 if ends.size else ids.shape[1]


def mask_of(real: int, tokens: int) -> Array:
    """Return the padding mask: boolean [1, tokens], true behind the text."""
    return (np.arange(tokens) >= real)[None]


def tokens_of_frames(durations: Array) -> Array:
    """Repeat each token's index for each of its frames.

    Args:
        durations: integers, [tokens]; negative ones count as 0.

    Returns:
        i64 [frames].

    Raises:
        ModelError: the sum is 0, or above ``MAX_FRAMES``.
    """
    lasting = np.maximum(durations.reshape(-1).astype(np.int64), 0)
    if not lasting.any():
        raise ModelError("the sum of durations is 0: the text has no audio; check its tokens")
    if lasting.max() > MAX_FRAMES or lasting.sum() > MAX_FRAMES:
        raise ModelError(
            f"durations of up to {lasting.max()} frames: the sum exceeds {MAX_FRAMES}; check that "
            "the model computes valid durations"
        )
    return np.repeat(np.arange(lasting.size), lasting)


def gather_frames(encoding: Array, tokens: Array, block: int) -> Array:
    """Gather the encoding of each frame's token.

    Args:
        encoding: [1, channels, tokens].
        tokens: i64 [frames], at most ``block``.
        block: number of frames that the audio model takes.

    Returns:
        [1, channels, block], 0 behind the frames.
    """
    gathered = np.zeros((*encoding.shape[:2], block), encoding.dtype)
    gathered[..., : tokens.size] = encoding[..., tokens]
    return gathered
